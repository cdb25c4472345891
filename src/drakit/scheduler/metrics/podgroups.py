"""Metrics of pod groups, under the names that kube-scheduler gives them.

In:  how attempts at groups ended, and how long they took.
Out: `scheduler_podgroup_*` in the registry.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

from drakit.scheduler.metrics.attempts import AttemptResult

_BUCKETS = tuple(0.001 * 2**power for power in range(15))


class PodGroupMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._attempts = Counter(
            "scheduler_podgroup_schedule_attempts_total",
            "Attempts to schedule pod groups, by their result",
            ("result", "profile"),
            registry=registry,
        )
        self._durations = Histogram(
            "scheduler_podgroup_scheduling_attempt_duration_seconds",
            "Duration of an attempt at a pod group",
            ("result", "profile"),
            registry=registry,
            buckets=_BUCKETS,
        )
        self._algorithm = Histogram(
            "scheduler_podgroup_scheduling_algorithm_duration_seconds",
            "Duration of the choice of nodes for the pods of a group",
            registry=registry,
            buckets=_BUCKETS,
        )

    def placed(self, seconds: float) -> None:
        self._algorithm.observe(seconds)

    def attempted(self, result: AttemptResult, profile: str, seconds: float) -> None:
        self._attempts.labels(result, profile).inc()
        self._durations.labels(result, profile).observe(seconds)
