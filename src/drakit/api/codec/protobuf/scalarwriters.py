"""Write single values of the protobuf form: numbers, texts, times and the other types that are one value in JSON.

In:  the value as JSON has it.
Out: the bytes after the field's tag.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import msgspec

from drakit.api.text.times import parse_time

Write = Callable[[Any], bytes]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)
_CACHED = 20_000  # texts; most that come again are short: names of fields, images, resources
_CACHED_LENGTH = 64


def varint(number: int) -> bytes:
    """A number in the form of the wire; negative ones as 64 bits."""
    if 0 <= number < 0x80:
        return _SMALL[number]
    rest, out = number & 0xFFFFFFFFFFFFFFFF, bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


_SMALL = tuple(bytes([number]) for number in range(0x80))


class _Lengths(dict[int, bytes]):
    """Lengths that were met. There are at most as many as a body has bytes; most messages are short."""

    def __missing__(self, length: int) -> bytes:
        made = varint(length)
        if length < 1 << 16:
            self[length] = made
        return made


LENGTHS = _Lengths()


class _Texts(dict[str, bytes]):
    """Texts with their length before them. The same few come again and again, so short ones are remembered."""

    def __missing__(self, text: str) -> bytes:
        data = text.encode("utf-8", "replace")
        made = LENGTHS[len(data)] + data
        if len(text) <= _CACHED_LENGTH:
            # Dropping everything is cheap and rare; an order of use would cost on every hit.
            if len(self) >= _CACHED:
                self.clear()
            self[text] = made
        return made


TEXTS = _Texts()


def sized(data: bytes) -> bytes:
    return LENGTHS[len(data)] + data


def write_bytes(text: str) -> bytes:
    return sized(base64.b64decode(text))


def write_bool(value: bool) -> bytes:  # one of many writers of one signature
    return b"\x01" if value else b"\x00"


@lru_cache(maxsize=8192)
def write_time(text: str | None) -> bytes:
    """Whole seconds. No time is a message without fields."""
    if not text:
        return b"\x00"
    seconds = (parse_time(text) - _EPOCH) // _SECOND
    # metav1.Time has whole seconds; the nanoseconds are written as zero, as by Go.
    return sized(b"\x08%b\x10\x00" % varint(seconds))


@lru_cache(maxsize=1024)
def write_micro_time(text: str | None) -> bytes:
    if not text:
        return b"\x00"
    seconds, rest = divmod(parse_time(text) - _EPOCH, _SECOND)
    return sized(b"\x08%b\x10%b" % (varint(seconds), varint(rest.microseconds * 1000)))


_UNITS = {
    "h": 3_600_000_000_000,
    "m": 60_000_000_000,
    "s": 1_000_000_000,
    "ms": 1_000_000,
    "us": 1000,
    "µs": 1000,
    "ns": 1,
}
_PARTS = re.compile(r"([0-9]*\.?[0-9]+)(h|ms|m|s|us|µs|ns)")


def write_duration(text: str | None) -> bytes:
    """`1h2m3.5s` in nanoseconds."""
    total = sum(round(float(number) * _UNITS[unit]) for number, unit in _PARTS.findall(text or ""))
    return sized(b"\x08" + varint(-total if (text or "").startswith("-") else total))


@lru_cache(maxsize=4096)
def write_quantity(text: str | int | None) -> bytes:
    return sized(b"\x0a" + TEXTS["0" if text is None else str(text)])


@lru_cache(maxsize=1024)
def write_int_or_string(value: int | str | None) -> bytes:
    if isinstance(value, str):
        return sized(b"\x08\x01\x10\x00\x1a" + TEXTS[value])
    return sized(b"\x08\x00\x10%b\x1a\x00" % varint(value or 0))


def write_raw(value: Any) -> bytes:
    """JSON as it was sent, without spaces. Nothing is a message without fields."""
    return b"\x00" if value is None else sized(b"\x0a" + sized(encode_json(value)))


def encode_json(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except OverflowError:  # integers beyond 64 bits, which only the standard library encodes
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def write_texts(values: list[str]) -> bytes:
    return sized(b"".join([b"\x0a" + TEXTS[each] for each in values]))


WRITERS: Mapping[str, Write] = {
    "string": TEXTS.__getitem__,
    "bytes": write_bytes,
    "bool": write_bool,
    "int32": varint,
    "int64": varint,
    "time": write_time,
    "microtime": write_micro_time,
    "duration": write_duration,
    "quantity": write_quantity,
    "intorstring": write_int_or_string,
    "raw": write_raw,
    "texts": write_texts,
}
