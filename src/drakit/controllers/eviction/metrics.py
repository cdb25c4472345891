"""Metrics about evictions, under the names that upstream gives them."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

_PREFIX = "device_taint_eviction_controller"
_BUCKETS = (0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240)


class EvictionMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.deletions = Counter(
            f"{_PREFIX}_pod_deletions",
            "Total number of Pods deleted by DeviceTaintEvictionController since its start.",
            registry=registry,
        )
        self.latency = Histogram(
            f"{_PREFIX}_pod_deletion_duration_seconds",
            "Latency, in seconds, between the time when a device taint effect has been activated and a Pod's deletion.",
            registry=registry,
            buckets=_BUCKETS,
        )
