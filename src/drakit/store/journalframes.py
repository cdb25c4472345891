"""What a server and the process that writes its file say to each other: four bytes of length, then MessagePack."""

from __future__ import annotations

from struct import Struct
from typing import Any, BinaryIO

import msgspec

LENGTH = Struct(">I")


def frame(content: Any) -> bytes:
    body = msgspec.msgpack.encode(content)
    return LENGTH.pack(len(body)) + body


def read_frame(stream: BinaryIO) -> Any:
    """The next frame's content; None at the end."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    body = stream.read(length)
    return msgspec.msgpack.decode(body) if len(body) == length else None
