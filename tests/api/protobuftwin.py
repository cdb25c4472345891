"""google.protobuf with descriptors of the same table: an independent reader and writer of every message."""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from drakit.api.codec.protobuf.table import LIST, MAP, messages

SCALARS = {"string": 9, "bytes": 12, "bool": 8, "int32": 5, "int64": 3}
SPECIAL = {
    "quantity": (("string", "string"),), "time": (("seconds", "int64"), ("nanos", "int32")),
    "microtime": (("seconds", "int64"), ("nanos", "int32")), "raw": (("raw", "bytes"),), "duration": (("d", "int64"),),
    "intorstring": (("type", "int64"), ("intVal", "int32"), ("strVal", "string")),
}  # fmt: skip


def without_length(written: bytes) -> bytes:
    """The message behind the length before it."""
    size = shift = 0
    for byte in written:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return written[len(written) - size :]


@cache
def pool() -> descriptor_pool.DescriptorPool:
    """Descriptors of all messages, made of the same table."""
    file = descriptor_pb2.FileDescriptorProto(name="all.proto", package="p", syntax="proto2")
    for special, parts in SPECIAL.items():
        message = file.message_type.add(name=special)
        for number, (name, type_) in enumerate(parts, 1):
            message.field.add(name=name, number=number, type=SCALARS[type_], label=1)
    texts = file.message_type.add(name="texts")
    texts.field.add(name="items", number=1, type=SCALARS["string"], label=3)
    for name, fields in messages().items():
        message = file.message_type.add(name=name.replace(".", "_"))
        for field in fields:
            own = {"name": field.name, "number": field.number, "label": 3 if field.form in (LIST, MAP) else 1}
            if field.form == MAP:
                entry = message.nested_type.add(name=f"{field.name[0].upper()}{field.name[1:]}Entry")
                entry.options.map_entry = True
                entry.field.add(name="key", number=1, label=1, type=SCALARS["string"])
                entry.field.add(name="value", number=2, label=1, **typed(field.type))
                message.field.add(**own, type=11, type_name=f".p.{message.name}.{entry.name}")
            else:
                message.field.add(**own, **typed(field.type))
    made = descriptor_pool.DescriptorPool()
    made.Add(file)
    return made


def typed(type_: str) -> dict[str, Any]:
    if type_ in SCALARS:
        return {"type": SCALARS[type_]}
    return {"type": 11, "type_name": f".p.{type_.replace('.', '_')}"}


def library(name: str) -> Any:
    return message_factory.GetMessageClass(pool().FindMessageTypeByName(f"p.{name.replace('.', '_')}"))
