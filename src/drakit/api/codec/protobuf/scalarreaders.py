"""Read single values of the protobuf form: numbers, texts, times and the other types that are one value in JSON.

In:  the whole data and the place of the value in it.
Out: the value as JSON has it. What makes no sense raises DecodeError; reading past the data raises IndexError.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from drakit.api.text.jsontext import parse_json
from drakit.api.text.times import format_micro_time, format_time
from drakit.base.errors import DecodeError

ReadSpan = Callable[[bytes, int, int], Any]
"""Read a value that has a length: the data, where the value begins, where it ends."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EMPTY: Mapping[str, Any] = {
    "string": "", "bytes": "", "bool": False, "int32": 0, "int64": 0, "time": None, "microtime": None,
    "duration": "0s", "quantity": "0", "intorstring": 0, "raw": None, "texts": None,
}  # fmt: skip
"""What JSON shows where nothing was set."""


def end_of_message() -> DecodeError:
    return DecodeError("unexpected EOF")


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at this place, as 64 bits without a sign, and the place behind it."""
    result = shift = 0
    while True:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            # Ten bytes carry 70 bits; what is beyond 64 is dropped, as in Go.
            return result & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
        if shift >= 70:
            raise DecodeError("proto: integer overflow")


def read_text(data: bytes, at: int, end: int) -> str:
    try:
        return data[at:end].decode()
    except UnicodeDecodeError:
        raise DecodeError("proto: a string is not valid UTF-8") from None


def read_bytes(data: bytes, at: int, end: int) -> str:
    return base64.b64encode(data[at:end]).decode()


def int64(value: int) -> int:
    # Negative numbers are on the wire as 64 bits in two's complement.
    return value - (1 << 64) if value >> 63 else value


def int32(value: int) -> int:
    low = value & 0xFFFFFFFF
    return low - (1 << 32) if low >> 31 else low


def fields_of(data: bytes, at: int, end: int) -> dict[int, Any]:
    """The last value of each field of a small message: a number, or the place of what has a length."""
    found: dict[int, Any] = {}
    while at < end:
        key, at = read_varint(data, at)
        if key & 7 == 0:
            found[key >> 3], at = read_varint(data, at)
        elif key & 7 == 2:
            size, at = read_varint(data, at)
            found[key >> 3] = (at, at + size)
            at += size
        else:
            at = skip(data, at, key, end)
    if at > end:
        raise end_of_message()
    return found


def skip(data: bytes, at: int, key: int, end: int) -> int:
    """The position after an unknown field. Groups, an obsolete wire type, may be nested."""
    depth = 0
    while True:
        if not key >> 3:
            raise DecodeError(f"proto: illegal tag {key >> 3} (wire type {key})")
        wire = key & 7
        if wire == 0:
            _, at = read_varint(data, at)
        elif wire in _FIXED:
            at += _FIXED[wire]
        elif wire == 2:
            size, at = read_varint(data, at)
            at += size
        elif wire == 3:
            depth += 1
        elif wire == 4 and depth:
            depth -= 1
        else:
            raise DecodeError("proto: unexpected end of group" if wire == 4 else f"proto: illegal wireType {wire}")
        # Checked after each step: a length may claim more than there is, by any amount.
        if at > end:
            raise end_of_message()
        if not depth:
            return at
        key, at = read_varint(data, at)


_FIXED = {1: 8, 5: 4}


def _numbers(data: bytes, at: int, end: int) -> tuple[int, int]:
    parts = fields_of(data, at, end)
    first, second = parts.get(1, 0), parts.get(2, 0)
    if not isinstance(first, int) or not isinstance(second, int):
        raise DecodeError("proto: wrong wireType = 2 for field Seconds")
    return int64(first), int32(second)


def _instant(data: bytes, at: int, end: int) -> datetime | None:
    """Seconds and nanoseconds since 1970; nothing at all is no time."""
    seconds, nanos = _numbers(data, at, end)
    # Go writes the zero time as an empty message; 1970 itself has its fields.
    if at == end:
        return None
    try:
        return _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
    except OverflowError:
        raise DecodeError("proto: a time out of range") from None


def read_time(data: bytes, at: int, end: int) -> str | None:
    instant = _instant(data, at, end)
    return None if instant is None else format_time(instant)


def read_micro_time(data: bytes, at: int, end: int) -> str | None:
    instant = _instant(data, at, end)
    return None if instant is None else format_micro_time(instant)


def read_duration(data: bytes, at: int, end: int) -> str:
    nanos, _ = _numbers(data, at, end)
    seconds, rest = divmod(abs(nanos), 1_000_000_000)
    fraction = f".{rest:09d}".rstrip("0").rstrip(".")
    return f"{'-' if nanos < 0 else ''}{seconds // 3600}h{seconds // 60 % 60}m{seconds % 60}{fraction}s"


def _span(parts: Mapping[int, Any], number: int) -> tuple[int, int] | None:
    span = parts.get(number)
    if isinstance(span, int):
        raise DecodeError(f"proto: wrong wireType = 0 for field {number}")
    return span


def read_quantity(data: bytes, at: int, end: int) -> str:
    span = _span(fields_of(data, at, end), 1)
    return read_text(data, *span) if span and span[0] < span[1] else "0"


def read_int_or_string(data: bytes, at: int, end: int) -> int | str:
    parts = fields_of(data, at, end)
    kind, number, text = parts.get(1, 0), parts.get(2, 0), _span(parts, 3)
    if not isinstance(number, int):
        raise DecodeError("proto: wrong wireType = 2 for field IntVal")
    if kind == 1:
        return read_text(data, *text) if text else ""
    return int32(number)


def read_raw(data: bytes, at: int, end: int) -> Any:
    span = _span(fields_of(data, at, end), 1)
    text = read_text(data, *span) if span else ""
    return parse_json(text) if text else None


def read_texts(data: bytes, at: int, end: int) -> list[str]:
    found: list[str] = []
    while at < end:
        key, at = read_varint(data, at)
        if key != 10:
            at = skip(data, at, key, end)
            continue
        size, at = read_varint(data, at)
        found.append(read_text(data, at, at + size))
        at += size
    if at > end:
        raise end_of_message()
    return found


SPAN_READERS: Mapping[str, ReadSpan] = {
    "string": read_text,
    "bytes": read_bytes,
    "time": read_time,
    "microtime": read_micro_time,
    "duration": read_duration,
    "quantity": read_quantity,
    "intorstring": read_int_or_string,
    "raw": read_raw,
    "texts": read_texts,
}
NUMBER_READERS: Mapping[str, Callable[[int], Any]] = {"bool": bool, "int32": int32, "int64": int64}
