"""Metrics of work queues, under the names that upstream gives them.

In:  what queues tell.
Out: `workqueue_*` with a `name` label, in the registry that was passed in.
"""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry, Gauge

from drakit.base.counts import Distributions, Tallies

_BUCKETS = tuple(10.0**power for power in range(-8, 4))


class _Families:
    """Registered once per registry: a registry refuses the same name twice."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, text: str) -> Gauge:
            return Gauge(f"workqueue_{name}", text, ["name"], registry=registry)

        def counter(name: str, text: str) -> Tallies:
            return Tallies(f"workqueue_{name}", text, ["name"], registry)

        def histogram(name: str, text: str) -> Distributions:
            return Distributions(f"workqueue_{name}", text, ["name"], registry, buckets=_BUCKETS)

        self.depth = gauge("depth", "Current depth of workqueue")
        self.adds = counter("adds_total", "Total number of adds handled by workqueue")
        self.retries = counter("retries_total", "Total number of retries handled by workqueue")
        self.waiting = histogram("queue_duration_seconds", "How long in seconds an item stays in workqueue.")
        self.working = histogram("work_duration_seconds", "How long in seconds processing an item takes.")
        self.unfinished = gauge(
            "unfinished_work_seconds", "How many seconds of work is in progress and has not been observed yet."
        )
        self.longest = gauge(
            "longest_running_processor_seconds", "How many seconds the longest running processor has been running."
        )


_FAMILIES: WeakKeyDictionary[CollectorRegistry, _Families] = WeakKeyDictionary()


class WorkQueueMetrics:
    """Of one queue."""

    def __init__(self, registry: CollectorRegistry, name: str) -> None:
        families = _FAMILIES.get(registry)
        if families is None:
            families = _FAMILIES[registry] = _Families(registry)
        self.adds = families.adds.labels(name)
        self.retries = families.retries.labels(name)
        self.waiting = families.waiting.labels(name)
        self.working = families.working.labels(name)
        self._depth = families.depth.labels(name)
        self._unfinished = families.unfinished.labels(name)
        self._longest = families.longest.labels(name)

    def follow(self, depth: Callable[[], float], running: Callable[[], list[float]]) -> None:
        """Register gauges that are read at each scrape; `running` gives the seconds of each key under way."""
        self._depth.set_function(depth)
        self._unfinished.set_function(lambda: sum(running()))
        self._longest.set_function(lambda: max(running(), default=0.0))
