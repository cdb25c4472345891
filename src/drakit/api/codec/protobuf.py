"""Protobuf request bodies: what typed Go clients send for a few kinds, with no other way to say it.

In:  bytes of `application/vnd.kubernetes.protobuf`: four bytes of magic, then an envelope with the object in it.
Out: plain data with the names of the JSON form, to be decoded like any other. Zero values that the wire carries are
     there as zero values. What is no such message raises DecodeError; a kind that nobody sends so, Unsupported.

The reader is driven by `protobuf.json`: per message, field numbers with names and types. Fields it does not know are
passed over, as protobuf asks.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from drakit.api.text.jsontext import parse_json
from drakit.api.text.times import format_micro_time, format_time
from drakit.base.errors import DecodeError, Unsupported

CONTENT_TYPE = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\x00"

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_DEPTH = 64  # the deepest message that a client sends has about fifteen levels
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Field(NamedTuple):
    """`form` is one, list, map, or inline: then the message's fields stand in the one around it."""

    name: str
    form: str
    type: str


def decode_protobuf(data: bytes) -> dict[str, Any]:
    """The object in the envelope, with apiVersion and kind."""
    if not data.startswith(MAGIC):
        raise DecodeError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    envelope = _read_envelope(memoryview(data)[len(MAGIC) :])
    types = {"apiVersion": envelope.api_version, "kind": envelope.kind}
    if envelope.content_encoding:
        raise Unsupported(f"content encoding {envelope.content_encoding!r} is not supported in protobuf bodies")
    if envelope.content_type not in ("", CONTENT_TYPE):
        return _embedded_json(envelope, types)
    name = _messages().kinds.get(f"{envelope.api_version} {envelope.kind}")
    name = name or _messages().kinds.get(f"* {envelope.kind}")
    if name is None:
        raise Unsupported(f'kind "{envelope.kind}" in version "{envelope.api_version}" is not read from protobuf')
    return {**types, **_message(name, envelope.raw, _MAX_DEPTH)}


class _Envelope(NamedTuple):
    api_version: str
    kind: str
    raw: memoryview
    content_encoding: str
    content_type: str


def _read_envelope(view: memoryview) -> _Envelope:
    parts: dict[int, memoryview] = {number: value for number, wire, value in _fields(view) if wire == _BYTES}
    empty = memoryview(b"")
    types = {number: value for number, wire, value in _fields(parts.get(1, empty)) if wire == _BYTES}
    version, kind = (_text(types.get(number, empty)) for number in (1, 2))
    encoding, content = (_text(parts.get(number, empty)) for number in (3, 4))
    return _Envelope(version, kind, parts.get(2, empty), encoding, content)


def _embedded_json(envelope: _Envelope, types: Mapping[str, str]) -> dict[str, Any]:
    if envelope.content_type != "application/json":
        raise Unsupported(f"content type {envelope.content_type!r} is not supported in protobuf bodies")
    document = parse_json(_text(envelope.raw))
    if not isinstance(document, dict):
        raise DecodeError("expected an object in the protobuf envelope")
    return {**types, **document}


def _fields(view: memoryview) -> Iterator[tuple[int, int, Any]]:
    """Number, wire type and raw value of every field, in order; DecodeError where the bytes make no sense."""
    at, end = 0, len(view)
    while at < end:
        key, at = _varint(view, at)
        number, wire = key >> 3, key & 7
        if number == 0:
            raise DecodeError("protobuf: illegal tag 0")
        if wire == _VARINT:
            value, at = _varint(view, at)
            yield number, wire, value
            continue
        size, at = _varint(view, at) if wire == _BYTES else (_FIXED_SIZES.get(wire, -1), at)
        if size < 0:
            raise DecodeError(f"protobuf: wire type {wire} is not supported")
        if size > end - at:
            raise DecodeError("protobuf: unexpected end of message")
        yield number, wire, view[at : at + size]
        at += size


_FIXED_SIZES = {_FIXED64: 8, _FIXED32: 4}


def _varint(view: memoryview, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        if at >= len(view):
            raise DecodeError("protobuf: unexpected end of message")
        byte = view[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
        if shift >= 70:
            raise DecodeError("protobuf: integer overflow")


def _message(name: str, view: memoryview, depth: int) -> dict[str, Any]:
    if depth == 0:
        raise DecodeError("protobuf: exceeded max depth")
    fields = _messages().fields[name]
    result: dict[str, Any] = {}
    for number, wire, raw in _fields(view):
        field = fields.get(number)
        if field is not None:
            _set(result, field, wire, raw, depth)
    return result


def _set(result: dict[str, Any], field: _Field, wire: int, raw: Any, depth: int) -> None:
    if field.form == "map":
        key, value = _entry(field, wire, raw, depth)
        result.setdefault(field.name, {})[key] = value
    elif field.form == "list":
        result.setdefault(field.name, []).extend(_values(field.type, wire, raw, depth))
    elif field.form == "inline":
        result |= _value(field.type, wire, raw, depth)
    else:
        value = _value(field.type, wire, raw, depth)
        if value is None:
            return  # a time that is none
        before = result.get(field.name)
        both = isinstance(before, dict) and isinstance(value, dict)
        result[field.name] = {**before, **value} if both and before else value


def _entry(field: _Field, wire: int, raw: Any, depth: int) -> tuple[str, Any]:
    key, value = "", _zero(field.type)
    for number, inner, each in _fields(_length_delimited(wire, raw, field.name)):
        if number == 1:
            key = _text(_length_delimited(inner, each, field.name))
        elif number == 2:
            value = _value(field.type, inner, each, depth - 1)
    return key, value


def _values(kind: str, wire: int, raw: Any, depth: int) -> list[Any]:
    if kind in _NUMBERS and wire == _BYTES:
        return list(_packed(kind, raw))
    return [_value(kind, wire, raw, depth)]


def _packed(kind: str, raw: memoryview) -> Iterator[Any]:
    at = 0
    while at < len(raw):
        number, at = _varint(raw, at)
        yield _NUMBERS[kind](number)


def _value(kind: str, wire: int, raw: Any, depth: int) -> Any:
    if kind in _NUMBERS:
        if wire != _VARINT:
            raise DecodeError(f"protobuf: wrong wireType = {wire} for field of type {kind}")
        return _NUMBERS[kind](raw)
    if kind == "double":
        if wire != _FIXED64:
            raise DecodeError(f"protobuf: wrong wireType = {wire} for field of type {kind}")
        return struct.unpack("<d", raw)[0]
    view = _length_delimited(wire, raw, kind)
    if kind.startswith("items "):
        return [item for _, each, part in _fields(view) for item in _values(kind[6:], each, part, depth - 1)]
    special = _SPECIAL.get(kind)
    return special(view) if special else _message(kind, view, depth - 1)


def _length_delimited(wire: int, raw: Any, what: str) -> memoryview:
    if wire != _BYTES:
        raise DecodeError(f"protobuf: wrong wireType = {wire} for field of type {what}")
    view: memoryview = raw
    return view


def _zero(kind: str) -> Any:
    if kind in _NUMBERS:
        return _NUMBERS[kind](0)
    return "" if kind in ("string", "bytes") else [] if kind.startswith("items ") else {}


def _text(view: memoryview) -> str:
    try:
        return str(view, "utf-8")
    except UnicodeDecodeError:
        raise DecodeError("protobuf: string is not valid UTF-8") from None


def _int64(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _int32(value: int) -> int:
    low = value & 0xFFFFFFFF
    return low - (1 << 32) if low >> 31 else low


def _scalars(view: memoryview) -> dict[int, Any]:
    return {number: value for number, _, value in _fields(view)}


def _instant(view: memoryview) -> datetime | None:
    """Seconds and nanoseconds since 1970; nothing at all is no time."""
    parts = _scalars(view)
    seconds, nanos = (parts.get(number, 0) for number in (1, 2))
    if not isinstance(seconds, int) or not isinstance(nanos, int):
        raise DecodeError("protobuf: a time is made of two integers")
    if not seconds and not nanos:
        return None
    try:
        return _EPOCH + timedelta(seconds=_int64(seconds), microseconds=_int32(nanos) // 1000)
    except OverflowError:
        raise DecodeError("protobuf: a time out of range") from None


def _time(view: memoryview) -> str | None:
    instant = _instant(view)
    return None if instant is None else format_time(instant)


def _micro_time(view: memoryview) -> str | None:
    instant = _instant(view)
    return None if instant is None else format_micro_time(instant)


def _first_text(view: memoryview) -> str:
    return next(
        (_text(_length_delimited(wire, raw, "string")) for number, wire, raw in _fields(view) if number == 1), ""
    )


def _int_or_string(view: memoryview) -> int | str:
    parts = _scalars(view)
    kind, number, text = parts.get(1, 0), parts.get(2, 0), parts.get(3, memoryview(b""))
    if not isinstance(number, int) or isinstance(text, int):
        raise DecodeError("protobuf: neither an integer nor a string")
    return _text(text) if kind == 1 else _int32(number)


def _raw_json(view: memoryview) -> Any:
    text = _first_text(view)
    return parse_json(text) if text else None


_NUMBERS: Mapping[str, Callable[[int], Any]] = {"bool": bool, "int32": _int32, "int64": _int64}
_SPECIAL: Mapping[str, Callable[[memoryview], Any]] = {
    "string": _text,
    "bytes": lambda view: base64.b64encode(view).decode(),
    "time": _time,
    "microtime": _micro_time,
    "quantity": _first_text,
    "intorstring": _int_or_string,
    "raw": _raw_json,
}


class _Messages(NamedTuple):
    kinds: Mapping[str, str]
    fields: Mapping[str, Mapping[int, _Field]]


@cache
def _messages() -> _Messages:
    text = resources.files(__package__).joinpath("protobuf.json").read_text(encoding="utf-8")
    declared = json.loads(text)
    fields = {
        name: {int(number): _parse_field(each) for number, each in numbered.items()}
        for name, numbered in declared["messages"].items()
    }
    return _Messages(declared["kinds"], fields)


_FORMS = {"[]": "list", "{}": "map", "~": "inline"}


def _parse_field(text: str) -> _Field:
    """`containers []core.v1.Container`."""
    name, _, kind = text.partition(" ")
    for mark, form in _FORMS.items():
        if kind.startswith(mark):
            return _Field(name, form, kind.removeprefix(mark))
    return _Field(name, "one", kind)
