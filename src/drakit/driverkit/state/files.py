"""Files as a parameter: whatever the kit reads, writes and flushes goes through here.

In:  paths and bytes.
Out: files that are there whole or not at all. `RealFileSystem` works beside the event loop; tests and the simulator
     bring files that fail, or that forget what was not flushed.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol, TypeVar

T = TypeVar("T")
_FLOCK = "hhqqi4x"  # l_type, l_whence, l_start, l_len, l_pid


class LockFile(Protocol):
    """An open file that others lock too. The locks go with `close`, or with the end of the process."""

    def try_lock(self, start: int, length: int) -> bool:
        """Whether this range is ours now; a length of 0 reaches to the end. Raise OSError."""
        ...

    def close(self) -> None: ...


class FileSystem(Protocol):
    """Every method raises OSError."""

    async def read(self, path: Path) -> bytes | None:
        """The content; none when there is no such file."""
        ...

    async def write(self, path: Path, content: bytes, *, flush: bool = True) -> None:
        """Replace the file as a whole. With `flush`, on return it survives the loss of power."""
        ...

    async def overwrite(self, path: Path, content: bytes) -> None:
        """Change the content of the file that is there, for those who have it mounted; not atomic."""
        ...

    async def remove(self, path: Path) -> None:
        """Remove a file; nothing when it is not there."""
        ...

    async def remove_tree(self, path: Path) -> None:
        """Remove a directory with all that is in it; nothing when it is not there."""
        ...

    async def rename(self, path: Path, target: Path) -> None: ...

    async def names(self, directory: Path) -> list[str]:
        """What is in a directory, in order; nothing when it is not there."""
        ...

    async def make_directory(self, path: Path) -> None:
        """Make a directory and those above it; nothing when it is there."""
        ...

    def open_lock(self, path: Path) -> LockFile:
        """The file by which processes agree; made when it is not there."""
        ...


class RealFileSystem:
    async def read(self, path: Path) -> bytes | None:
        return await _beside(lambda: _read(path))

    async def write(self, path: Path, content: bytes, *, flush: bool = True) -> None:
        await _beside(lambda: write_whole(path, content, flush=flush))

    async def overwrite(self, path: Path, content: bytes) -> None:
        await _beside(lambda: _overwrite(path, content))

    async def remove(self, path: Path) -> None:
        await _beside(lambda: path.unlink(missing_ok=True))

    async def remove_tree(self, path: Path) -> None:
        await _beside(lambda: _remove_tree(path))

    async def rename(self, path: Path, target: Path) -> None:
        await _beside(lambda: path.rename(target))

    async def names(self, directory: Path) -> list[str]:
        return await _beside(lambda: _names(directory))

    async def make_directory(self, path: Path) -> None:
        await _beside(lambda: path.mkdir(parents=True, exist_ok=True))

    def open_lock(self, path: Path) -> LockFile:
        path.parent.mkdir(parents=True, exist_ok=True)
        return _LockDescriptor(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644))


class _LockDescriptor:
    """Locks of the open file, not of the process: two of them in one process exclude each other as well."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def try_lock(self, start: int, length: int) -> bool:
        wanted = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, start, length, 0)
        try:
            fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLK, wanted)
        except (BlockingIOError, PermissionError):  # EAGAIN or EACCES: somebody else has it
            return False
        return True

    def close(self) -> None:
        os.close(self._descriptor)


async def _beside(work: Callable[[], T]) -> T:
    """Run a file operation in a thread, so that a slow disk does not block the event loop."""
    return await asyncio.to_thread(work)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _names(directory: Path) -> list[str]:
    try:
        return sorted(each.name for each in directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def write_whole(path: Path, content: bytes, *, flush: bool) -> None:
    """Write beside and rename. The temporary name has no suffix that a container runtime would look at."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # With the pid: two instances of a driver may write the same file during a rolling update.
    beside = path.with_name(f".{path.name}.tmp{os.getpid()}")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            _write_all(descriptor, content)
            if flush:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        beside.replace(path)
    except OSError:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise
    if flush:
        _flush_directory(path.parent)


def _overwrite(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        _write_all(descriptor, content)
        # Cut after writing, so that a reader never finds the file empty.
        os.ftruncate(descriptor, len(content))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


def _flush_directory(directory: Path) -> None:
    """A new name survives only when its directory has been written too."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_tree(path: Path) -> None:
    if not path.is_dir() or path.is_symlink():
        path.unlink(missing_ok=True)
        return
    for each in path.iterdir():
        _remove_tree(each)
    with suppress(FileNotFoundError):
        path.rmdir()
