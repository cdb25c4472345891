"""The protobuf form of every kind: what is written is read as it was, and an independent reader agrees."""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, unknown_fields
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drakit.api.codec.documents import to_wire
from drakit.api.codec.protobuf import decode_protobuf, encode_message, encode_protobuf, has_message
from drakit.api.codec.protobuf.table import LIST, MAP, message_of, messages
from drakit.api.registry import KINDS, Kind
from tests.api.strategies import objects

SCALARS = {"string": 9, "bytes": 12, "bool": 8, "int32": 5, "int64": 3}
SPECIAL = {
    "quantity": (("string", "string"),), "time": (("seconds", "int64"), ("nanos", "int32")),
    "microtime": (("seconds", "int64"), ("nanos", "int32")), "raw": (("raw", "bytes"),), "duration": (("d", "int64"),),
    "intorstring": (("type", "int64"), ("intVal", "int32"), ("strVal", "string")),
}  # fmt: skip


def same(kind: Kind) -> bool:
    return kind.internal in kind.versions and has_message(kind.internal_version, kind.kind)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(kind=st.sampled_from([kind for kind in KINDS if same(kind)]), data=st.data())
def test_what_is_written_is_read_as_it_was(kind: Kind, data: st.DataObject) -> None:
    wire = to_wire(data.draw(objects(kind)))
    assert decode_protobuf(encode_protobuf(wire)) == wire


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(kind=st.sampled_from([kind for kind in KINDS if same(kind)]), data=st.data())
def test_another_library_reads_all_that_is_written(kind: Kind, data: st.DataObject) -> None:
    wire = to_wire(data.draw(objects(kind)))
    envelope = encode_message(kind.internal_version, kind.kind, wire)
    name = message_of(kind.internal_version, kind.kind)
    assert name is not None
    other = library(name)
    body = envelope[len(envelope) - other_size(envelope) :]
    # It has another order of map keys. What it does not know it would keep, so it has to know everything.
    assert len(other.FromString(body).SerializeToString()) == len(body)
    assert not unknown_fields.UnknownFieldSet(other.FromString(body))


def other_size(data: bytes) -> int:
    """The length before a message."""
    size = shift = 0
    for byte in data:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return size


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


def test_every_kind_that_is_served_has_a_message() -> None:
    without = {
        (kind.group_version(version), kind.kind)
        for kind in KINDS
        for version in kind.versions
        if not has_message(kind.group_version(version), kind.kind)
    }
    assert without == set()
