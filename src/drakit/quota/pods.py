"""What a Pod counts against a quota: itself, its requests and its limits, until it has ended."""

from __future__ import annotations

from collections.abc import Mapping

from drakit.api import Pod
from drakit.api.footprint import is_pod_level, pod_limits, pod_requests
from drakit.base.quantity import Quantity

_BARE_AND_REQUESTS = ("cpu", "memory", "ephemeral-storage")
_COMPUTE = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")


def pod_usage(pod: Pod) -> dict[str, Quantity]:
    """Amounts by quota name. A pod that has ended uses nothing any more, but is still an object."""
    if pod.is_terminal:
        return {}
    counted = {"pods": Quantity.of(1)}
    for name, amount in pod_requests(pod, claims=False).items():
        for key in _request_names(name):
            counted[key] = amount
    for name, amount in pod_limits(pod).items():
        if name in _BARE_AND_REQUESTS:
            counted[f"limits.{name}"] = amount
    return counted


def unspecified_names(pod: Pod, limited: frozenset[str]) -> dict[str, tuple[str, ...]]:
    """The compute resources that a quota limits and containers do not specify, with the names of these containers.

    An amount at pod level specifies it for all containers.
    """
    missing: dict[str, tuple[str, ...]] = {}
    for name in sorted(limited.intersection(_COMPUTE)):
        kind, _, resource = name.rpartition(".")
        resource_kind = kind or "requests"
        pod_level = _amounts(pod.spec.resources, resource_kind)
        if is_pod_level(resource) and resource in pod_level:
            continue
        containers = [*pod.spec.containers, *pod.spec.init_containers]
        open_ones = tuple(sorted(c.name for c in containers if resource not in _amounts(c.resources, resource_kind)))
        if open_ones:
            missing[name] = open_ones
    return missing


def is_best_effort(pod: Pod) -> bool:
    """Whether no container, and the pod itself, asks for any cpu or memory."""
    if pod.status.qos_class:
        return pod.status.qos_class == "BestEffort"
    levels = [pod.spec.resources, *(each.resources for each in (*pod.spec.containers, *pod.spec.init_containers))]
    return not any(
        amount.sign > 0
        for level in levels
        for kind in ("requests", "limits")
        for name, amount in _amounts(level, kind).items()
        if name in ("cpu", "memory")
    )


def _amounts(level: object, kind: str) -> Mapping[str, Quantity]:
    amounts: Mapping[str, Quantity] = getattr(level, kind, {}) if level is not None else {}
    return amounts


def _request_names(resource: str) -> tuple[str, ...]:
    if resource in _BARE_AND_REQUESTS or resource.startswith("hugepages-"):
        return resource, f"requests.{resource}"
    return (f"requests.{resource}",)
