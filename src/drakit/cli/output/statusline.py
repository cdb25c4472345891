"""One line at the bottom of a terminal that changes while something runs.

In:  texts.
Out: the newest of them on standard error, in place of the one before. Nothing anywhere but on a terminal. Log messages
     push the line down instead of running into it.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_CLEAR = "\r\x1b[2K"


class StatusLine:
    def __init__(self) -> None:
        self._shown = ""

    @property
    def is_useful(self) -> bool:
        """Whether anybody sees it."""
        return sys.stderr.isatty() and os.environ.get("TERM", "") not in ("", "dumb")

    def show(self, text: str) -> None:
        # One column less than the terminal has: a full line would wrap, and could not be cleared.
        text = text[: shutil.get_terminal_size().columns - 1]
        if self.is_useful and text != self._shown:
            sys.stderr.write(_CLEAR + text)
            sys.stderr.flush()
            self._shown = text

    def clear(self) -> None:
        if self._shown:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()
            self._shown = ""

    @contextmanager
    def giving_way(self) -> Iterator[None]:
        """Log messages get a line of their own."""
        handlers = logging.getLogger().handlers
        for each in handlers:
            each.addFilter(self._give_way)
        try:
            yield
        finally:
            self.clear()
            for each in handlers:
                each.removeFilter(self._give_way)

    def _give_way(self, _record: logging.LogRecord) -> bool:
        self.clear()
        return True
