"""Figures about devices that have to be made ready, by the names that kube-scheduler gives them."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

from drakit.api.objects.claims import ResourceClaim
from drakit.api.requests import results_of
from drakit.scheduler.dynamicresources.bindingconditions import BindingFailed, BindingTimedOut, conditional

LABELS = ("profile", "driver", "status")
_BUCKETS = tuple(0.1 * 2**power for power in range(14))


class Figures:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._allocations = Counter(
            "scheduler_dra_bindingconditions_allocations",
            "Number of allocations using devices with BindingConditions, counted per driver per scheduling attempt",
            LABELS,
            registry=registry,
        )
        self._wait = Histogram(
            "scheduler_dra_bindingconditions_wait_duration_seconds",
            "Time in seconds spent waiting for BindingConditions to be satisfied during PreBind.",
            LABELS,
            buckets=_BUCKETS,
            registry=registry,
        )

    def waited(self, profile: str, claims: list[ResourceClaim], seconds: float, error: Exception | None) -> None:
        """A pod waited for its devices, and what came of it."""
        status = _status(error)
        for claim in claims:
            for result in results_of(claim):
                self._wait.labels(profile, result.driver, status).observe(seconds)
            for result in conditional(claim):
                self._allocations.labels(profile, result.driver, status).inc()


def _status(error: Exception | None) -> str:
    match error:
        case None:
            return "success"
        case BindingFailed():
            return "failure"
        case BindingTimedOut():
            return "timeout"
        case _:
            return "error"
