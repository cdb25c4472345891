"""The latest sample of the history as Prometheus metrics."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from drakit.dashboard.history import ClusterHistory

_PLAIN = (
    ("drakit_devices", "Devices of the cluster; partitions of one card count once.", "total"),
    ("drakit_devices_allocated", "Devices that are allocated.", "allocated"),
    ("drakit_pods_pending", "Pods that have no node yet.", "pending"),
    ("drakit_devices_fragmentation", "The part of free devices on nodes that are partly used.", "fragmentation"),
)


class HistoryCollector(Collector):
    def __init__(self, history: ClusterHistory) -> None:
        self._history = history

    def collect(self) -> Iterator[GaugeMetricFamily]:
        if not self._history.samples:
            return
        latest = self._history.samples[-1]
        for name, text, field in _PLAIN:
            yield GaugeMetricFamily(name, text, value=getattr(latest, field))
        waits = GaugeMetricFamily("drakit_scheduling_latency_seconds", "How long pods waited.", labels=["quantile"])
        for quantile, value in (("0.5", latest.p50), ("0.99", latest.p99)):
            if value is not None:
                waits.add_metric([quantile], value)
        yield waits
        for name, text, label, found in (
            ("drakit_class_devices", "Devices of a class.", "class", latest.sizes),
            ("drakit_class_devices_allocated", "Devices of a class that are allocated.", "class", latest.classes),
            ("drakit_namespace_devices_allocated", "Devices of a namespace.", "namespace", latest.namespaces),
        ):
            family = GaugeMetricFamily(name, text, labels=[label])
            for key, number in found.items():
                family.add_metric([key], number)
            yield family
