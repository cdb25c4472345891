"""One at a time: calls for a claim, calls of a driver, and two instances of a driver during a rolling update.

In:  claims that somebody wants to work on.
Out: the right to do so. Within the process it comes in the order of asking; between processes a lock on ranges of a
     file decides, which the kernel gives back when a process dies.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TypeVar

from drakit.base.clock import Clock
from drakit.base.errors import Unavailable
from drakit.driverkit.state.files import FileSystem, LockFile

T = TypeVar("T")

_PAUSE = 0.02
_WHOLE = (0, 0)


class ClaimLocks:
    """Invariant: locks are taken in one order (driver, claims by uid, file), so nobody waits in a ring."""

    def __init__(self, *, serialize: bool, path: Path, files: FileSystem, clock: Clock) -> None:
        """`path` is the file that instances of the driver share."""
        self._serialize = serialize
        self._path = path
        self._files = files
        self._clock = clock
        self._driver = asyncio.Lock()
        self._claims: dict[str, _Counted] = {}

    @asynccontextmanager
    async def held(self, uids: Iterable[str]) -> AsyncIterator[None]:
        wanted = sorted(set(uids))
        async with AsyncExitStack() as stack:
            if self._serialize:
                await stack.enter_async_context(self._driver)
            for uid in wanted:
                await stack.enter_async_context(self._claim(uid))
            ranges = [_WHOLE] if self._serialize else sorted({(_place(uid), 1) for uid in wanted})
            await stack.enter_async_context(held_in_file(self._files, self._path, ranges, self._clock))
            yield

    @asynccontextmanager
    async def _claim(self, uid: str) -> AsyncIterator[None]:
        counted = self._claims.setdefault(uid, _Counted())
        counted.users += 1
        try:
            async with counted.lock:
                yield
        finally:
            counted.users -= 1
            if not counted.users:
                del self._claims[uid]


class _Counted:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0


def _place(uid: str) -> int:
    """The byte of the lock file for a claim. Two claims on one byte wait for each other, which is harmless."""
    return zlib.crc32(uid.encode())


@asynccontextmanager
async def held_in_file(
    files: FileSystem, path: Path, ranges: Sequence[tuple[int, int]], clock: Clock
) -> AsyncIterator[None]:
    """Hold ranges of a file against other processes. Raise Unavailable when the file cannot be used."""
    opened = _explained(path, lambda: files.open_lock(path))
    try:
        for start, length in ranges:
            while not _explained(path, lambda: opened.try_lock(start, length)):  # noqa: B023 - called at once
                # Polled: a lock call that waits would hold a thread, and could not be cancelled.
                await clock.sleep(_PAUSE)
        yield
    finally:
        opened.close()  # gives every range back


def try_hold(files: FileSystem, path: Path) -> LockFile | None:
    """Hold a whole file until it is closed; none when another process does. Raise OSError."""
    opened = files.open_lock(path)
    if opened.try_lock(*_WHOLE):
        return opened
    opened.close()
    return None


def _explained(path: Path, work: Callable[[], T]) -> T:
    try:
        return work()
    except OSError as error:
        raise Unavailable(f"the lock {path} cannot be used: {error}") from None
