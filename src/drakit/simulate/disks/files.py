"""The files of a simulated machine, as its driver sees them: in memory, and only what was flushed survives.

In:  calls of the driver kit's FileSystem.
Out: the same answers as a disk gives; after `lose_power`, files as they were when they were last flushed.
"""

from __future__ import annotations

import errno
from pathlib import Path

from drakit.simulate.loops import PROCESS

_END = 1 << 62


class SimulatedLock:
    """An open lock file. Ranges belong to it, and it to the process that opened it."""

    def __init__(self, path: str, held: list[SimulatedLock]) -> None:
        self.process = PROCESS.get()
        self._path = path
        self._all = held
        self._ranges: list[tuple[int, int]] = []

    def try_lock(self, start: int, length: int) -> bool:
        end = start + length if length else _END
        if any(each.overlaps(self._path, start, end) for each in self._all if each is not self):
            return False
        self._ranges.append((start, end))
        return True

    def overlaps(self, path: str, start: int, end: int) -> bool:
        return path == self._path and any(first < end and start < last for first, last in self._ranges)

    def close(self) -> None:
        if self in self._all:
            self._all.remove(self)


class DiskFiles:
    """Keeps the driver kit's FileSystem contract. While `full`, every write fails with ENOSPC."""

    def __init__(self) -> None:
        self._files: dict[str, bytes] = {}
        self._flushed: dict[str, bytes] = {}
        self._locks: list[SimulatedLock] = []
        self.full = False

    def lose_power(self) -> None:
        """What was not flushed is gone; a file that was removed without a flush is back."""
        self._files = dict(self._flushed)
        self._locks.clear()

    def unlock(self, process: str) -> None:
        """The process is gone: the kernel gives its locks back."""
        self._locks[:] = [each for each in self._locks if each.process != process]

    def forget_below(self, directory: Path) -> None:
        """A file system in memory does not survive a reboot."""
        for files in (self._files, self._flushed):
            for name in [each for each in files if each.startswith(f"{directory}/")]:
                del files[name]

    async def read(self, path: Path) -> bytes | None:
        return self._files.get(str(path))

    async def write(self, path: Path, content: bytes, *, flush: bool = True) -> None:
        self._refuse_when_full(path)
        self._files[str(path)] = content
        if flush:
            self._flushed[str(path)] = content

    async def overwrite(self, path: Path, content: bytes) -> None:
        self._refuse_when_full(path)
        if str(path) not in self._files:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))
        self._files[str(path)] = self._flushed[str(path)] = content

    async def remove(self, path: Path) -> None:
        self._files.pop(str(path), None)

    async def remove_tree(self, path: Path) -> None:
        for name in [each for each in self._files if each == str(path) or each.startswith(f"{path}/")]:
            del self._files[name]

    async def rename(self, path: Path, target: Path) -> None:
        if str(path) not in self._files:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))
        self._files[str(target)] = self._files.pop(str(path))

    async def names(self, directory: Path) -> list[str]:
        start = f"{directory}/"
        return sorted({each[len(start) :].partition("/")[0] for each in self._files if each.startswith(start)})

    async def make_directory(self, path: Path) -> None:
        """A directory is there when something is in it."""

    def open_lock(self, path: Path) -> SimulatedLock:
        made = SimulatedLock(str(path), self._locks)
        self._locks.append(made)
        return made

    def _refuse_when_full(self, path: Path) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
