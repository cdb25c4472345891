"""The time that one look at a node may take, for work that is deep below whoever set it.

In:  a function that tells when the time is over, set around a look at a node.
Out: `TimeOver`, raised by whoever is about to begin something expensive after that.

A selector that costs as much as it may takes milliseconds for one device, and a node has hundreds of devices.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

HasExpired = Callable[[], bool]
"""Whether the time is over."""


class TimeOver(Exception):
    """The time is over. What was found out until then is remembered."""


class _Current(threading.local):
    """Of each thread: one may look at a node beside the others."""

    expired: HasExpired | None = None


_current = _Current()


@contextmanager
def until(expired: HasExpired | None) -> Iterator[None]:
    """Work that is done inside ends with TimeOver when the time is over."""
    before, _current.expired = _current.expired, expired
    try:
        yield
    finally:
        _current.expired = before


def check_time() -> None:
    """Raise TimeOver when the time is over."""
    if _current.expired is not None and _current.expired():
        raise TimeOver
