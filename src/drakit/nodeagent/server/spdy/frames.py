"""Frames of SPDY/3.1: bytes in, frames out, and frames to bytes.

In:  pieces of a byte stream, cut anywhere.
Out: frames in order; ProtocolError for what is none.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

VERSION = 3
MOST_FRAME_BYTES = 1024 * 1024
"""kubectl writes pieces of 32 KiB."""

FLAG_FIN = 0x01

SYN_STREAM = 1
SYN_REPLY = 2
RST_STREAM = 3
PING = 6
GOAWAY = 7

RST_PROTOCOL_ERROR = 1
RST_REFUSED = 3
RST_CANCEL = 5
RST_INTERNAL_ERROR = 6

_CONTROL = 0x80
_ID = 0x7FFFFFFF


class ProtocolError(ValueError):
    """The peer does not speak SPDY/3.1."""


@dataclass(frozen=True, slots=True)
class DataFrame:
    stream: int
    data: bytes
    fin: bool = False


@dataclass(frozen=True, slots=True)
class ControlFrame:
    """`body` is what follows the eight bytes that all have."""

    kind: int
    flags: int
    body: bytes

    def word(self, index: int = 0) -> int:
        """A 32-bit number of the body; raise ProtocolError when it is too short."""
        try:
            number: int = struct.unpack_from(">I", self.body, 4 * index)[0]
        except struct.error:
            raise ProtocolError(f"a frame of kind {self.kind} is too short") from None
        return number

    @property
    def stream(self) -> int:
        return self.word() & _ID


Frame = DataFrame | ControlFrame


class FrameReader:
    """Collects bytes until they make a frame. Invariant: it holds less than one frame between calls."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Every frame that is complete now. Raise ProtocolError; nothing can be read after that."""
        self._held += data
        while len(self._held) >= 8:
            size = int.from_bytes(self._held[5:8], "big")
            if size > MOST_FRAME_BYTES:
                raise ProtocolError(f"a frame of {size} bytes; at most {MOST_FRAME_BYTES} are taken")
            if len(self._held) < 8 + size:
                return
            frame = _frame(bytes(self._held[:8]), bytes(self._held[8 : 8 + size]))
            del self._held[: 8 + size]
            yield frame


def _frame(head: bytes, body: bytes) -> Frame:
    flags = head[4]
    if not head[0] & _CONTROL:
        return DataFrame(int.from_bytes(head[:4], "big"), body, bool(flags & FLAG_FIN))
    version = int.from_bytes(head[:2], "big") & 0x7FFF
    if version != VERSION:
        raise ProtocolError(f"SPDY version {version}; only {VERSION} is spoken here")
    return ControlFrame(int.from_bytes(head[2:4], "big"), flags, body)


def data_frame(stream: int, data: bytes, *, fin: bool = False) -> bytes:
    return struct.pack(">I", stream) + _flags_and_size(FLAG_FIN if fin else 0, data) + data


def control_frame(kind: int, body: bytes, *, flags: int = 0) -> bytes:
    return struct.pack(">HH", 0x8000 | VERSION, kind) + _flags_and_size(flags, body) + body


def _flags_and_size(flags: int, body: bytes) -> bytes:
    return struct.pack(">I", flags << 24 | len(body))


def syn_stream(stream: int, block: bytes, *, fin: bool = False) -> bytes:
    """A new stream: its id, no other that it belongs to, no priority, no credential slot; then headers."""
    return control_frame(SYN_STREAM, struct.pack(">IIH", stream, 0, 0) + block, flags=FLAG_FIN if fin else 0)


def syn_reply(stream: int, block: bytes) -> bytes:
    return control_frame(SYN_REPLY, struct.pack(">I", stream) + block)


def rst_stream(stream: int, code: int) -> bytes:
    return control_frame(RST_STREAM, struct.pack(">II", stream, code))


def ping(number: int) -> bytes:
    return control_frame(PING, struct.pack(">I", number))


def goaway(last_stream: int, code: int = 0) -> bytes:
    return control_frame(GOAWAY, struct.pack(">II", last_stream, code))
