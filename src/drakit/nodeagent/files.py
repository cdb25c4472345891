"""Files that are whole or not there: written beside, flushed, and renamed."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

Flush = Callable[[int], None]


def write_atomically(path: Path, data: bytes, *, mode: int = 0o600, flush: Flush = os.fsync) -> None:
    """Replace the file's content; after a crash at any point it has the old content or the new one."""
    beside = path.with_name(f".{path.name}.tmp")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    os.fchmod(descriptor, mode)  # somebody who was killed may have left one, with another mode
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            flush(file.fileno())
        beside.replace(path)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        flush(directory)
    finally:
        os.close(directory)


def tree_size(directory: Path) -> int:
    """Bytes that the files below take on the disk."""
    total = 0
    for place, _, names in os.walk(directory, onerror=lambda _: None):
        for name in names:
            try:
                total += (Path(place) / name).lstat().st_blocks * 512
            except OSError:
                continue  # it has gone meanwhile
    return total
