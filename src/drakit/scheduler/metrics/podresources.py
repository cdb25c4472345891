"""What pods ask for, as kube-scheduler shows it on `/metrics/resources`.

In:  the cache of pods.
Out: `kube_pod_resource_request` and `kube_pod_resource_limit`, counted at each scrape. A pod that has ended has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from drakit.api.footprint import pod_limits, pod_requests
from drakit.api.objects.partial import Partial
from drakit.api.objects.pods import Pod
from drakit.base.quantity import Quantity

_LABELS = ("namespace", "pod", "node", "scheduler", "priority", "resource", "unit")
_BYTES = ("memory", "ephemeral-storage", "storage")
_NANOS = 1e9


class PodResources(Collector):
    def __init__(self, registry: CollectorRegistry, pods: Iterable[Partial[Pod]]) -> None:
        self._pods = pods
        registry.register(self)

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        requests = _family("kube_pod_resource_request", "Resources requested by workloads on the cluster")
        limits = _family("kube_pod_resource_limit", "Resources limit for workloads on the cluster")
        for each in self._pods:
            pod = each.view
            if not pod.is_terminal:
                _add(requests, pod, pod_requests(pod))
                _add(limits, pod, pod_limits(pod))
        yield requests
        yield limits


def _family(name: str, text: str) -> GaugeMetricFamily:
    told = f"{text}, broken down by pod. This shows the resource usage the scheduler and kubelet expect per pod."
    return GaugeMetricFamily(name, told, labels=_LABELS)


def _add(family: GaugeMetricFamily, pod: Pod, amounts: Mapping[str, Quantity]) -> None:
    meta, spec = pod.metadata, pod.spec
    priority = "" if spec.priority is None else str(spec.priority)
    for name, amount in sorted(amounts.items()):
        if amount:
            labels = (meta.namespace, meta.name, spec.node_name, spec.scheduler_name, priority, name, _unit(name))
            family.add_metric(labels, amount.nanos / _NANOS)


def _unit(resource: str) -> str:
    if resource == "cpu":
        return "cores"
    return "bytes" if resource in _BYTES or resource.startswith("hugepages-") else "integer"
