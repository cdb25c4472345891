"""Read the log file of a container: the CRI's format, from the end, since a time, or as it grows.

In:  a file with one record per line: `<time> <stdout|stderr> <F|P> <text>`; P is a part of a line that goes on.
Out: the text in pieces of bounded size, each ready to be sent.

A file that is followed may be renamed and made anew (rotation), or cut; reading goes on in the new one. Records that
cannot be read are left out: a crash of the writer leaves such.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from drakit.base.clock import Clock

BLOCK = 64 * 1024
LONGEST_RECORD = 1024 * 1024
"""Runtimes split lines at 16 KiB; what is longer than this without an end is damaged, and dropped."""
POLL_SECONDS = 0.1
STATE_SECONDS = 1.0
"""How often a follower asks whether the container still runs."""


class LogSelection:
    """Which records a reader wants, and how they look. It remembers how much was sent already."""

    def __init__(
        self, *, timestamps: bool = False, since: datetime | None = None, limit_bytes: int | None = None
    ) -> None:
        self._timestamps = timestamps
        self._since = since
        self._left = limit_bytes
        self._at_line_start = True

    @property
    def exhausted(self) -> bool:
        """Whether as many bytes as were asked for have been sent."""
        return self._left is not None and self._left <= 0

    def text(self, records: list[bytes]) -> bytes:
        """What is sent of these records."""
        sent = b"".join(self._pieces(records))
        if self._left is not None:
            sent = sent[: self._left]
            self._left -= len(sent)
        return sent

    def _pieces(self, records: list[bytes]) -> Iterator[bytes]:
        for record in records:
            fields = record.split(b" ", 3)
            if len(fields) != 4 or fields[1] not in (b"stdout", b"stderr") or not self._wanted(fields[0]):
                continue
            if self._timestamps and self._at_line_start:
                yield fields[0] + b" "
            # Tags are separated by colons; the first says whether the line ends here.
            self._at_line_start = not fields[2].startswith(b"P")
            yield fields[3] + b"\n" if self._at_line_start else fields[3]

    def _wanted(self, time: bytes) -> bool:
        if self._since is None:
            return True
        try:
            return datetime.fromisoformat(time.decode("ascii")) >= self._since
        except (ValueError, TypeError):
            return False


async def read_log(
    path: Path,
    selection: LogSelection,
    *,
    clock: Clock,
    tail: int | None = None,
    follow: Callable[[], Awaitable[bool]] | None = None,
) -> AsyncGenerator[bytes, None]:
    """What is in the file now; with `follow`, which says whether the container runs, also what comes until it ends.

    Raise OSError when there is no such file.
    """
    with path.open("rb", buffering=0) as file:
        source = _Source(path, file)
        try:
            source.seek(tail_start(file, tail) if tail is not None else 0)
            # Without follow, only what was there at the start: a busy container must not keep the request open.
            end = None if follow is not None else os.fstat(file.fileno()).st_size
            alive = _Alive(follow, clock)
            while True:
                # Asked before reading: what a container wrote before its end is read then.
                last = not await alive()
                while (records := source.records(end, last=last)) is not None:
                    if text := selection.text(records):
                        yield text
                    if selection.exhausted:
                        return
                    # Reading a file never waits by itself; a long log would hold the event loop.
                    await asyncio.sleep(0)
                if last:
                    return
                if not source.renewed():
                    await clock.sleep(POLL_SECONDS)
        finally:
            source.close()


class _Alive:
    """Whether the container runs. Asks the runtime at most once a second, as that may be expensive."""

    def __init__(self, ask: Callable[[], Awaitable[bool]] | None, clock: Clock) -> None:
        self._ask = ask
        self._clock = clock
        self._next = clock.monotonic()

    async def __call__(self) -> bool:
        if self._ask is None:
            return False
        if self._clock.monotonic() < self._next:
            return True
        self._next = self._clock.monotonic() + STATE_SECONDS
        return await self._ask()


class _Source:
    """A log file by its path: the one that was there first, then those that take its place."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        self._rest = b""

    def seek(self, offset: int) -> None:
        self._file.seek(offset)
        self._rest = b""

    def records(self, end: int | None, *, last: bool) -> list[bytes] | None:
        """Whole records of the next block, or None at the end of the file.

        With `last`, an unfinished record is returned as well: its end will not come any more.
        """
        size = BLOCK if end is None else min(BLOCK, end - self._file.tell())
        block = self._file.read(size) if size > 0 else b""
        if not block:
            rest, self._rest = (self._rest, b"") if last else (b"", self._rest)
            return [rest] if rest else None
        records = (self._rest + block).split(b"\n")
        self._rest = records.pop()
        if len(self._rest) > LONGEST_RECORD:
            self._rest = b""
        return records

    def renewed(self) -> bool:
        """Whether another file has come under the name, or this one was cut; then reading goes on there.

        The writer is in the new file from the moment that it exists, so the old one was read to its end before.
        """
        here = os.fstat(self._file.fileno())
        try:
            there = self._path.stat()
        except OSError:
            return False
        if (there.st_ino, there.st_dev) == (here.st_ino, here.st_dev):
            # copytruncate: the same file, cut by whoever rotates it.
            if there.st_size < self._file.tell():
                self.seek(0)
                return True
            return False
        if self._file.tell() < here.st_size:
            return True  # something was written to the old one after all
        self._reopen()
        return True

    def _reopen(self) -> None:
        fresh = self._path.open("rb", buffering=0)
        self._file.close()
        self._file, self._rest = fresh, b""

    def close(self) -> None:
        self._file.close()


def tail_start(file: BinaryIO, lines: int) -> int:
    """The offset at which the last `lines` lines begin. Partial records (P) do not count as lines."""
    end = file.seek(0, os.SEEK_END)
    start, found = end, 0
    for offset, record in _backwards(file, end):
        if _ends_line(record):
            found += 1
            if found > lines:
                return start
        start = offset
    return start


def _ends_line(record: bytes) -> bool:
    fields = record.split(b" ", 3)
    return len(fields) == 4 and not fields[2].startswith(b"P")


def _backwards(file: BinaryIO, end: int) -> Iterator[tuple[int, bytes]]:
    """Finished records with their offsets, the last one first."""
    carried, position, finished = b"", end, False
    while position > 0:
        size = min(BLOCK, position)
        position = file.seek(position - size)
        block = file.read(size) + carried
        first, *records = block.split(b"\n")
        offset = position + len(block)
        for record in reversed(records):
            offset -= len(record)
            if finished:
                yield offset, record
            finished = True  # what follows the last newline is not finished yet
            offset -= 1
        carried = first
        if len(carried) > LONGEST_RECORD:
            return
    if finished:
        yield 0, carried
