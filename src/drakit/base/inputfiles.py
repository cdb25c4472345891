"""Read files that somebody names: with a limit, and without waiting for ever.

In:  a path, and a number of bytes.
Out: what is in the file, or what comes through a pipe. A device, a silent pipe or too much of it is an OSError.
"""

from __future__ import annotations

import os
import select
import stat
from pathlib import Path

SETTINGS_BYTES = 16 * 1024 * 1024
"""What a file with settings may have: kubeconfigs, certificates, keys, tokens, policies."""
_PIECE = 1024 * 1024
_PATIENCE = 5_000
"""Milliseconds in which something must come through a pipe."""


def read_settings(path: Path) -> bytes:
    """A file with settings."""
    data = read_regular(path, SETTINGS_BYTES)
    if len(data) > SETTINGS_BYTES:
        raise OSError(f"{path} has more than {SETTINGS_BYTES} bytes")
    return data


def read_settings_text(path: Path) -> str:
    """A file with settings, in UTF-8. Raise ValueError for anything else."""
    return read_settings(path).decode()


def read_regular(path: Path, limit: int) -> bytes:
    """A file, or what comes through a pipe, up to one byte more than the limit.

    Raise OSError for a device, which has no end, and for a pipe through which nothing comes.
    """
    # Without blocking: a pipe that nobody has opened for writing would hold us for ever.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            raise OSError("it is a device, not a file")
        if stat.S_ISFIFO(mode):
            return _from_pipe(descriptor, limit)
        parts: list[bytes] = []
        size = 0
        while size <= limit and (part := file.read(min(_PIECE, limit + 1 - size))):
            parts.append(part)
            size += len(part)
        return b"".join(parts)


def _from_pipe(descriptor: int, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    while size <= limit:
        if not poller.poll(_PATIENCE):
            raise OSError(f"nothing came through the pipe for {_PATIENCE // 1000} s")
        part = os.read(descriptor, _PIECE)
        if not part:
            break
        parts.append(part)
        size += len(part)
    return b"".join(parts)
