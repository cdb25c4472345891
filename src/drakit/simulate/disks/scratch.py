"""A directory for files that nobody needs after this process."""

from __future__ import annotations

import os
from tempfile import TemporaryDirectory

_MEMORY = "/dev/shm"  # noqa: S108 - a directory of our own is made in it


def scratch_directory() -> TemporaryDirectory[str]:
    """In memory where the system offers that: a disk takes milliseconds for what agents write per pod."""
    return TemporaryDirectory(prefix="drakit-", dir=_MEMORY if os.access(_MEMORY, os.W_OK | os.X_OK) else None)
