"""Python's garbage collector while clusters run in a test process.

In:  a cluster that begins and ends.
Out: a collector that leaves alone what was there before, and looks rarely at what comes; afterwards as it was.

A test process has much that lives as long as it does, and a pod makes thousands of short-lived objects without cycles:
walking all of them again and again took a tenth of a pod's time.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_THRESHOLDS = (10_000, 5, 10)


class _Users:
    """The clusters that run, and what the collector was set to before the first of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._before = gc.get_threshold()

    def enter(self) -> None:
        with self._lock:
            self._count += 1
            if self._count == 1:
                self._before = gc.get_threshold()
                gc.set_threshold(*_THRESHOLDS)
                gc.freeze()

    def leave(self) -> None:
        with self._lock:
            self._count -= 1
            if self._count == 0:
                gc.unfreeze()
                gc.set_threshold(*self._before)


_USERS = _Users()


@contextmanager
def rare_collections() -> Iterator[None]:
    """Of clusters that run at the same time, the last one to end gives the collector back."""
    _USERS.enter()
    try:
        yield
    finally:
        _USERS.leave()
