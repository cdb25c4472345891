"""Spare Python's garbage collector work that frees nothing.

In:  a process that starts; later, one that has what it begins with.
Out: a collector that looks rarely at what comes, and leaves alone what was there.

Objects live long and have no cycles: walking all of them again and again would only stop the process. Without this the
longest pause grows with the number of objects: 100 ms at 15,000 claims.
"""

from __future__ import annotations

import gc

_THRESHOLDS = (20_000, 4, 500)
"""An object is walked once with 20,000 new ones, and once more with 80,000: pauses of some milliseconds."""


def collect_rarely() -> None:
    """Before much is loaded: of the CPU time of a start with 50,000 objects an eighth went to the collector."""
    gc.set_threshold(*_THRESHOLDS)


def spare_the_collector() -> None:
    collect_rarely()
    gc.collect()
    # After a collection, so that no garbage is frozen with the rest.
    gc.freeze()
