"""Progress: how far long work has come, for people who wait at a terminal.

In:  the steps of some work.
Out: a bar on standard error that goes away when the work is done; nothing for short work, and nothing anywhere but on a
     terminal, so that pipes and logs stay clean.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
_LONG = 200  # fewer steps are done before anybody could read about them


def tracked(steps: Sequence[T], what: str) -> Iterator[T]:
    """The steps one by one, with a bar while there are many."""
    if len(steps) < _LONG or not sys.stderr.isatty():
        yield from steps
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(steps, what, console=Console(stderr=True), transient=True)
