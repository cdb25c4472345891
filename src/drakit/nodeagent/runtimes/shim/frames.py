"""Frames between the agent and the shim: one letter, the length in four bytes, the data.

To the shim:  `a` attach output · `i` stdin · `c` close stdin · `w` window size · `r` reopen the log · `k` kill all
From it:      `o` stdout · `e` stderr · `x` the exit code as text, the last frame
"""

from __future__ import annotations

import struct

ATTACH, STDIN, CLOSE_STDIN, RESIZE, REOPEN, KILL = b"a", b"i", b"c", b"w", b"r", b"k"
STDOUT, STDERR, EXIT = b"o", b"e", b"x"

_HEADER = struct.Struct("!cI")
_SIZE = struct.Struct("!HH")
MOST = 1 << 20


def frame(kind: bytes, data: bytes = b"") -> bytes:
    return _HEADER.pack(kind, len(data)) + data


def window_size(width: int, height: int) -> bytes:
    return frame(RESIZE, _SIZE.pack(height & 0xFFFF, width & 0xFFFF))


def rows_and_columns(data: bytes) -> tuple[int, int]:
    rows, columns = _SIZE.unpack(data)
    return rows, columns


class ShimFrameReader:
    """Puts frames together from pieces. Raises ValueError for a frame that nobody would send."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[tuple[bytes, bytes]]:
        self._buffer += data
        frames = []
        while len(self._buffer) >= _HEADER.size:
            kind, length = _HEADER.unpack_from(self._buffer)
            if length > MOST:
                raise ValueError(f"frame of {length} bytes")
            if len(self._buffer) < _HEADER.size + length:
                break
            frames.append((kind, bytes(self._buffer[_HEADER.size : _HEADER.size + length])))
            del self._buffer[: _HEADER.size + length]
        return frames
