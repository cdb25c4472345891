"""The screen, where there is one."""

from __future__ import annotations

import sys

_CLEAR = "\x1b[H\x1b[2J\x1b[3J"


def clear_screen() -> None:
    """Begin at the top of an empty screen; a blank line where output goes to a file."""
    sys.stdout.write(_CLEAR if sys.stdout.isatty() else "\n")
