"""Metrics of attempts, queue, cache and preemption, under the names that kube-scheduler gives them.

In:  what queue, cycles and bindings tell.
Out: `scheduler_*` in the registry that was passed in. What is told at every attempt has its labels resolved once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import cache, partial

from prometheus_client import CollectorRegistry, Counter, Gauge

from drakit.base.counts import Distributions, Tallies

_MOST_ATTEMPTS = 15


class AttemptResult(StrEnum):
    """How an attempt ended: the label `result`."""

    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    ERROR = "error"


def _doubling(first: float, factor: float, count: int) -> tuple[float, ...]:
    return tuple(first * factor**power for power in range(count))


class SchedulerMetrics:
    """Of one scheduler; what its queue tells (`QueueObserver`) included."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, text: str, labels: Sequence[str]) -> Tallies:
            return Tallies(f"scheduler_{name}", text, labels, registry)

        def gauge(name: str, text: str, labels: Sequence[str]) -> Gauge:
            return Gauge(f"scheduler_{name}", text, labels, registry=registry)

        def histogram(name: str, text: str, labels: Sequence[str], buckets: Sequence[float]) -> Distributions:
            return Distributions(f"scheduler_{name}", text, labels, registry, buckets=buckets)

        attempts = counter(
            "schedule_attempts_total", "Attempts to schedule pods, by their result", ("result", "profile")
        )
        durations = histogram(
            "scheduling_attempt_duration_seconds",
            "Duration of an attempt: the choice of a node and the binding",
            ("result", "profile"),
            _doubling(0.001, 2, 15),
        )
        points = histogram(
            "framework_extension_point_duration_seconds",
            "Duration of all plugins of an extension point",
            ("extension_point", "status", "profile"),
            _doubling(0.0001, 2, 12),
        )
        executions = histogram(
            "plugin_execution_duration_seconds",
            "Duration of one plugin at an extension point, of one attempt in ten",
            ("plugin", "extension_point", "status"),
            _doubling(0.00001, 1.5, 20),
        )
        sli = histogram(
            "pod_scheduling_sli_duration_seconds",
            "From the first time a pod was queued until it was bound",
            ("attempts",),
            _doubling(0.01, 2, 20),
        )
        reasons = Distributions(
            "drakit_scheduler_attempt_duration_seconds",
            "Duration of an attempt, by its result and the plugins that refused the pod",
            ("result", "reason"),
            registry,
            buckets=_doubling(0.001, 2, 15),
        )
        incoming = counter("queue_incoming_pods_total", "Pods that came into a part of the queue", ("queue", "event"))
        refused = gauge("unschedulable_pods", "Pods that a plugin refused at their last attempt", ("plugin", "profile"))
        self._pending = gauge("pending_pods", "Pods that wait, by part of the queue", ("queue",))
        self._cache = gauge("cache_size", "What the scheduler's cache holds", ("type",))
        self.algorithm = histogram(
            "scheduling_algorithm_duration_seconds", "Duration of the choice of a node", (), _doubling(0.001, 2, 15)
        ).labels()
        self.attempts_needed = histogram(
            "pod_scheduling_attempts", "How often a pod was tried until it was bound", (), _doubling(1, 2, 5)
        ).labels()
        self.preemption_attempts = Counter(
            "scheduler_preemption_attempts_total", "How often pods tried to preempt others", registry=registry
        )
        self.preemption_victims = histogram(
            "preemption_victims", "How many pods a preemption evicted", (), _doubling(1, 2, 7)
        ).labels()
        self.attempts = cache(attempts.labels)
        self.durations = cache(durations.labels)
        self.points = cache(points.labels)
        self.executions = cache(executions.labels)
        self._reasons = cache(reasons.labels)
        self._incoming = cache(incoming.labels)
        self._refused = cache(refused.labels)
        self._sli = cache(sli.labels)

    def attempted(self, result: AttemptResult, profile: str, seconds: float, *, reason: str = "") -> None:
        """`reason` are the plugins that refused the pod."""
        self.attempts(result, profile).inc()
        self.durations(result, profile).observe(seconds)
        self._reasons(result, reason).observe(seconds)

    def bound(self, attempts: int, since_queued: float) -> None:
        """A pod was bound, at this attempt and so long after it was first queued."""
        self.attempts_needed.observe(attempts)
        count = f"{_MOST_ATTEMPTS}+" if attempts >= _MOST_ATTEMPTS else str(attempts)
        self._sli(count).observe(since_queued)

    def incoming(self, part: str, event: str) -> None:
        self._incoming(part, event).inc()

    def unschedulable(self, plugin: str, profile: str, change: int) -> None:
        self._refused(plugin, profile).inc(change)

    def follow_queue(self, pending: Callable[[], Mapping[str, int]]) -> None:
        """Register gauges whose values are read at each scrape."""
        for part in pending():
            self._pending.labels(part).set_function(partial(_count, pending, part))

    def follow_cache(self, sizes: Mapping[str, Callable[[], float]]) -> None:
        for kind, size in sizes.items():
            self._cache.labels(kind).set_function(size)


def _count(pending: Callable[[], Mapping[str, int]], part: str) -> float:
    return pending()[part]
