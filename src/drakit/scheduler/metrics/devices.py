"""Metrics of claims and of devices that have to be made ready, under the names that kube-scheduler gives them.

In:  what the plugin DynamicResources did.
Out: `scheduler_dra_*`, `scheduler_resourceclaim_*` and our own `drakit_scheduler_*` in the registry.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

from drakit.api.objects.claims import ResourceClaim
from drakit.api.requests import results_of
from drakit.base.counts import Distributions

LABELS = ("profile", "driver", "status")
_STEPS = tuple(4**power for power in range(12))
_BUCKETS = tuple(0.1 * 2**power for power in range(14))


class DeviceMetrics:
    """One per scheduler: all its profiles share it."""

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

        self._steps = Distributions(
            "drakit_scheduler_allocation_search_steps",
            "Steps of the search for devices on the node that was chosen, or on one that was refused, by result",
            ("result",),
            registry,
            buckets=_STEPS,
        )

    def searched(self, result: str, steps: int) -> None:
        """Devices were searched for on a node; `result` says what came of it."""
        self._steps.labels(result).observe(steps)

    def waited(self, profile: str, claims: list[ResourceClaim], seconds: float, status: str) -> None:
        """A pod waited for its devices; `status` says what came of it."""
        for claim in claims:
            for result in results_of(claim):
                self._wait.labels(profile, result.driver, status).observe(seconds)
                if result.binding_conditions:
                    self._allocations.labels(profile, result.driver, status).inc()


class ClaimMetrics:
    """Registered only where the scheduler makes claims for extended resources."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._creates = Counter(
            "scheduler_resourceclaim_creates",
            "Number of ResourceClaims creation requests within scheduler, by their result",
            ["status"],
            registry=registry,
        )

    def created(self, *, ok: bool) -> None:
        self._creates.labels("success" if ok else "failure").inc()
