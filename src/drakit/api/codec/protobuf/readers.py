"""Read messages: a function per message, made from its fields.

In:  the data, and where the message begins and ends in it.
Out: the object as plain data with the names of JSON, and with what JSON shows of fields that are empty.

Fields that the message does not have are passed over, as Kubernetes does. A field with another wire type than it
should have, and bytes that end too early, raise DecodeError. No message is recursive, so the depth is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from drakit.api.codec.protobuf.scalarreaders import (
    EMPTY,
    NUMBER_READERS,
    SPAN_READERS,
    ReadSpan,
    end_of_message,
    read_varint,
    skip,
)  # fmt: skip
from drakit.api.codec.protobuf.table import INLINE, LIST, MAP, POINTER, VALUE, MessageField, messages
from drakit.base.errors import DecodeError

Spans = dict[int, list[tuple[int, int]]]

_MOST_PIECES = 1000
"""Of one message. Nobody sends more than one, and a megabyte of empty pieces would take a hundred in memory."""


class _Entry(NamedTuple):
    """How a field is taken in: `number` makes a value of a varint, `span` of a span, and `put` puts it in."""

    name: str
    number: Callable[[int], Any] | None = None
    span: ReadSpan | None = None
    """None for a single message: it may come in several pieces, so it is read when all of them are there."""
    put: Callable[[dict[str, Any], str, Any], None] = dict.__setitem__


class _Single(NamedTuple):
    """A single message: its tag, its name (empty if its fields stand in the object around it), and its reader."""

    key: int
    name: str
    read: ReadSpan
    always: bool
    """JSON shows it even when it was not on the wire."""


@cache
def reader_of(message: str) -> ReadSpan:
    """The function that reads this message."""
    fields = messages()[message]
    entries = {key: entry for field in fields for key, entry in _entries(field)}
    names = {field.number: field.name for field in fields}
    finish = _finisher(fields)

    def read(data: bytes, at: int, end: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        spans: Spans = {}
        while at < end:
            key = data[at]
            at += 1
            # One byte is the usual case, read without a call; only longer varints go through `read_varint`.
            if key > 127:
                key, at = read_varint(data, at - 1)
            entry = entries.get(key)
            if entry is None:
                at = _pass_over(data, at, key, end, names)
                continue
            size = data[at]
            at += 1
            if size > 127:
                size, at = read_varint(data, at - 1)
            name, number, span, put = entry
            if number is not None:
                put(result, name, number(size))
                continue
            stop = at + size
            if stop > end:
                raise end_of_message()
            if span is None:
                pieces = spans.setdefault(key, [])
                pieces.append((at, stop))
                if len(pieces) > _MOST_PIECES:
                    raise DecodeError(f"proto: a message comes in more than {_MOST_PIECES} pieces")
            else:
                put(result, name, span(data, at, stop))
            at = stop
        if at > end:
            raise end_of_message()
        finish(result, data, spans)
        return result

    return read


def _finisher(fields: Sequence[MessageField]) -> Callable[[dict[str, Any], bytes, Spans], None]:
    singles = [
        _Single(_tag(field), "" if field.form == INLINE else field.name, reader_of(field.type), field.form != POINTER)
        for field in fields
        if _is_single_message(field)
    ]
    hidden = [field.name for field in fields if field.form in (VALUE, POINTER) and _hides_empty(field)]
    shown = [(field.name, _shown_empty(field)) for field in fields if _shows_empty(field)]

    def finish(result: dict[str, Any], data: bytes, spans: Spans) -> None:
        # Go writes zero values to the wire, and omitempty leaves them out of JSON.
        for name in hidden:
            if name in result and not result[name]:
                del result[name]
        for key, name, read, always in singles:
            if key not in spans:
                if not always:
                    continue
                # A message of no bytes: its fields get the values that JSON shows for empty ones.
                value = read(b"", 0, 0)
            else:
                value = _read_spans(read, data, spans[key])
            if name:
                result[name] = value
            else:
                result.update(value)
        for name, empty in shown:
            if name not in result:
                result[name] = [] if empty.__class__ is list else empty

    return finish


def _read_spans(read: ReadSpan, data: bytes, spans: list[tuple[int, int]]) -> Any:
    if len(spans) == 1:
        return read(data, *spans[0])
    # Pieces of one message are the same as one piece with all their fields.
    joined = b"".join([data[start:stop] for start, stop in spans])
    return read(joined, 0, len(joined))


def _pass_over(data: bytes, at: int, key: int, end: int, names: Mapping[int, str]) -> int:
    name = names.get(key >> 3)
    if name is not None:
        raise DecodeError(f"proto: wrong wireType = {key & 7} for field {name}")
    return skip(data, at, key, end)


def _tag(field: MessageField) -> int:
    return field.number << 3 | (0 if field.type in NUMBER_READERS else 2)


def _is_single_message(field: MessageField) -> bool:
    return field.form not in (LIST, MAP) and field.type not in EMPTY


def _entries(field: MessageField) -> Iterator[tuple[int, _Entry]]:
    key, number = _tag(field), NUMBER_READERS.get(field.type)
    if field.form == MAP:
        yield key, _Entry(field.name, span=_entry_reader(field), put=_put_pair)
    elif field.form == LIST and number is not None:
        yield key, _Entry(field.name, number=number, put=_append)
        # Writers may send numbers one by one or packed, and a reader has to take both.
        yield field.number << 3 | 2, _Entry(field.name, span=_packed_reader(number), put=_extend)
    elif field.form == LIST:
        yield key, _Entry(field.name, span=_span_reader(field.type), put=_append)
    elif _is_single_message(field):
        yield key, _Entry(field.name)
    elif number is not None:
        yield key, _Entry(field.name, number=number)
    else:
        yield key, _Entry(field.name, span=SPAN_READERS[field.type])


def _span_reader(type_: str) -> ReadSpan:
    return SPAN_READERS.get(type_) or reader_of(type_)


def _append(result: dict[str, Any], name: str, value: Any) -> None:
    result.setdefault(name, []).append(value)


def _extend(result: dict[str, Any], name: str, values: Any) -> None:
    result.setdefault(name, []).extend(values)


def _put_pair(result: dict[str, Any], name: str, pair: tuple[str, Any]) -> None:
    result.setdefault(name, {})[pair[0]] = pair[1]


def _packed_reader(number: Callable[[int], Any]) -> ReadSpan:
    def read(data: bytes, at: int, end: int) -> list[Any]:
        found = []
        while at < end:
            value, at = read_varint(data, at)
            found.append(number(value))
        if at > end:
            raise end_of_message()
        return found

    return read


def _entry_reader(field: MessageField) -> ReadSpan:
    """Key and value of a map's entry. What is missing is empty."""
    text, value_of = SPAN_READERS["string"], _span_reader(field.type)

    def read(data: bytes, at: int, end: int) -> tuple[str, Any]:
        key, value = "", None
        while at < end:
            tag, at = read_varint(data, at)
            if tag not in (10, 18):
                at = skip(data, at, tag, end)
                continue
            size, at = read_varint(data, at)
            stop = at + size
            if stop > end:
                raise end_of_message()
            if tag == 10:
                key = text(data, at, stop)
            else:
                value = value_of(data, at, stop)
            at = stop
        return key, value_of(b"", 0, 0) if value is None else value

    return read


def _hides_empty(field: MessageField) -> bool:
    """Scalars that JSON leaves out when they are empty. Of pointers that is true of bytes alone: Go's nil."""
    if field.shown or field.type not in ("string", "bytes", "bool", "int32", "int64", "time"):
        return False
    return field.type == "bytes" if field.form == POINTER else field.type != "time" or field.omits_zero


def _shows_empty(field: MessageField) -> bool:
    if field.form == INLINE or _is_single_message(field):
        return field.form == POINTER and field.shown
    # Structs in Go, so that `omitempty` has no effect on them.
    struct = field.form == VALUE and field.type in ("time", "microtime", "raw", "quantity", "intorstring", "duration")
    return field.shown or (struct and not field.omits_zero)


def _shown_empty(field: MessageField) -> Any:
    if field.form in (LIST, MAP):
        return [] if field.name == "items" else None
    return None if field.form == POINTER else EMPTY[field.type]
