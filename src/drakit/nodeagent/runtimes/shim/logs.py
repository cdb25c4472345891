"""A container's output as lines of the CRI log format.

`2026-01-01T10:00:00.000000000Z stdout F text`; the tag is P for a piece of a line that goes on in the next entry.
"""

from __future__ import annotations

import os
import time

_LONGEST = 16 * 1024


class LogFile:
    """Appends to one file; `reopen` goes on in a new file of the same name after a rotation."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._rest = {"stdout": b"", "stderr": b""}
        self._file = self._open()

    def write(self, stream: str, data: bytes) -> None:
        """Whole lines are written at once; the start of a line waits for its end, or until it is too long."""
        *lines, rest = (self._rest[stream] + data).split(b"\n")
        entries = [entry for line in lines for entry in _entries(stream, line, last="F")]
        while len(rest) > _LONGEST:
            entries.append(_entry(stream, "P", rest[:_LONGEST]))
            rest = rest[_LONGEST:]
        self._rest[stream] = rest
        self._write(entries)

    def end(self, stream: str) -> None:
        """Write what follows the last newline, tagged P (partial): the line was never finished."""
        rest, self._rest[stream] = self._rest[stream], b""
        if rest:
            self._write([_entry(stream, "P", rest)])

    def reopen(self) -> None:
        os.close(self._file)
        self._file = self._open()

    def close(self) -> None:
        os.close(self._file)

    def _write(self, entries: list[bytes]) -> None:
        """A full disk loses entries, not the container."""
        try:
            # One write per call: a reader that follows the file does not see half an entry.
            os.write(self._file, b"".join(entries))
        except OSError:
            return

    def _open(self) -> int:
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)


def _entries(stream: str, line: bytes, *, last: str) -> list[bytes]:
    pieces = [line[start : start + _LONGEST] for start in range(0, len(line), _LONGEST)] or [b""]
    return [_entry(stream, "P", piece) for piece in pieces[:-1]] + [_entry(stream, last, pieces[-1])]


def _entry(stream: str, tag: str, text: bytes) -> bytes:
    return f"{now()} {stream} {tag} ".encode() + text + b"\n"


def now() -> str:
    """Wall time with nanoseconds; whoever reads the log sorts and cuts by it."""
    nanos = time.time_ns()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(nanos // 10**9)) + f".{nanos % 10**9:09d}Z"
