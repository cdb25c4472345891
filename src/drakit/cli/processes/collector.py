"""Set Python's garbage collector and its threads for a process that serves.

In:  a process that starts; later, one that has what it begins with.
Out: a collector that looks rarely at what comes, and leaves alone what was there; threads that give way soon.

Objects live long and have no cycles: walking all of them again and again would only stop the process. Without this the
longest pause grows with the number of objects: 100 ms at 15,000 claims.
"""

from __future__ import annotations

import gc
import sys

_THRESHOLDS = (10_000, 1, 1_700)
"""An object is walked once with 10,000 new ones, and once more with 30,000: pauses of up to 14 ms. With five times
20,000, a thousand watches that begin, or an object of 30,000 elements, stopped the process for 40 ms."""
_SWITCH_SECONDS = 0.001
"""Python's own is five times as long."""


def collect_rarely() -> None:
    """Before much is loaded: of the CPU time of a start with 50,000 objects an eighth went to the collector."""
    gc.set_threshold(*_THRESHOLDS)


def spare_the_collector() -> None:
    collect_rarely()
    gc.collect()
    # After a collection, so that no garbage is frozen with the rest.
    gc.freeze()


def share_the_interpreter() -> None:
    """Let the event loop have the interpreter soon when a thread computes: it asks for it at least once per turn."""
    sys.setswitchinterval(_SWITCH_SECONDS)
