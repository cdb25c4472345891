"""Sockets that nobody listens at."""

from __future__ import annotations

import socket
from pathlib import Path


def leave_stale_socket(path: Path) -> None:
    """What a process that was killed leaves."""
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
