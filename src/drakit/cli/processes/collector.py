"""Set Python's garbage collector and its threads for a process that serves.

In:  a process that starts; later, one that has what it begins with.
Out: a collector that leaves the start alone, and what it brought; that looks rarely at what comes later; threads that
     give way soon.

Objects live long and have no cycles: walking all of them again and again would only stop the process. Without this the
longest pause grows with the number of objects: 100 ms at 15,000 claims.
"""

from __future__ import annotations

import gc
import sys

_THRESHOLDS = (10_000, 1, 1_700)
"""An object is walked once with 10,000 new ones, and once more with 30,000: pauses of up to 14 ms. With five times
20,000, a thousand watches that begin, or an object of 30,000 elements, stopped the process for 40 ms."""
_LOADED_TOGETHER = 1_000_000
"""New objects at a start before the collector looks at all: 50,000 claims are fewer."""
_SWITCH_SECONDS = 0.001
"""Python's own is five times as long."""


def load_without_collector() -> None:
    """Before much is loaded. With the thresholds of later, a tenth of the CPU time of a start went to the collector."""
    gc.set_threshold(_LOADED_TOGETHER)


def spare_the_collector() -> None:
    """Once all is loaded: what is there stays, and is never looked at again."""
    # No collection before: it took 0.7 s with 50,000 claims, and a start leaves 200 objects of garbage at most.
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)


def share_the_interpreter() -> None:
    """Let the event loop have the interpreter soon when a thread computes: it asks for it at least once per turn."""
    sys.setswitchinterval(_SWITCH_SECONDS)
