"""A time limit for the evaluation of one node, for code far below the caller that sets it.

In:  a function that says whether the time is over, set with `until` around the evaluation of a node.
Out: `TimeOver`, raised by `check_time` before the next expensive step.

A selector near its cost limit takes milliseconds for one device, and a node may have hundreds of devices.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

HasExpired = Callable[[], bool]
"""Whether the time is over."""


class TimeOver(Exception):
    """The time is over. Results that were computed before stay cached."""


class _Current(threading.local):
    """One value per thread: threads may evaluate nodes at the same time, each with its own limit."""

    expired: HasExpired | None = None


_current = _Current()


@contextmanager
def until(expired: HasExpired | None) -> Iterator[None]:
    """Inside the `with` block, `check_time` raises TimeOver once the time is over."""
    before, _current.expired = _current.expired, expired
    try:
        yield
    finally:
        _current.expired = before


def check_time() -> None:
    """Raise TimeOver when the time is over."""
    if _current.expired is not None and _current.expired():
        raise TimeOver
