"""What a pod takes of a node: the one sum that scheduler, quota and node agent share.

Containers run together, so they add up. Init containers run one after the other, each beside the sidecars (restartable
init containers) that were started before it, so the largest moment counts. What claims take of the node's own cpu and
memory comes on top, once per claim. Where the pod itself names an amount, that is its budget for all of these together.
Overhead is added in the end.
"""

from __future__ import annotations

from collections.abc import Mapping

from drakit.api.objects.pods import Container, ContainerStatus, Pod, ResourceRequirements
from drakit.base.quantity import Quantity

Amounts = dict[str, Quantity]
_HUGEPAGES = "hugepages-"
_RESIZE_PENDING = "PodResizePending"
_INFEASIBLE = "Infeasible"


def pod_requests(
    pod: Pod,
    *,
    claims: bool = True,
    overhead: bool = True,
    status: bool = False,
    at_least: Mapping[str, Quantity] | None = None,
) -> Amounts:
    """The amounts by resource name.

    `claims`: with what `nodeAllocatableResourceClaimStatuses` says. `status`: a pod that is being resized takes the
    larger of what it asks for, was promised and has. `at_least`: what a container without a request is taken to ask.
    """
    total = container_requests(pod, status=status, at_least=at_least)
    if claims:
        for resources in _claim_resources(pod).values():
            _add(total, resources)
    for name, amount in _pod_level(pod.spec.resources, "requests").items():
        total[name] = amount
    if overhead:
        _add(total, pod.spec.overhead)
    return total


def pod_limits(pod: Pod, *, overhead: bool = True) -> Amounts:
    """The limits by resource name; overhead is added only where there is a limit."""
    total = container_limits(pod)
    total |= _pod_level(pod.spec.resources, "limits")
    if overhead:
        limited = {name for name, limit in total.items() if limit.sign}
        _add(total, {name: amount for name, amount in pod.spec.overhead.items() if name in limited})
    return total


def container_requests(pod: Pod, *, status: bool = False, at_least: Mapping[str, Quantity] | None = None) -> Amounts:
    """The requests of the containers alone, at their highest: while init containers run, or after them."""
    known = {each.name: each for each in (*pod.status.container_statuses, *pod.status.init_container_statuses)}
    infeasible = _resize_is_infeasible(pod)

    def requests(container: Container, *, running: bool) -> Mapping[str, Quantity]:
        asked = container.resources.requests
        if status and running and (seen := known.get(container.name)) and seen.resources:
            asked = _effective(asked, seen, infeasible=infeasible)
        return {**at_least, **asked} if at_least else asked

    return _aggregate(
        [requests(each, running=True) for each in pod.spec.containers],
        [(is_sidecar(each), requests(each, running=is_sidecar(each))) for each in pod.spec.init_containers],
    )


def container_limits(pod: Pod) -> Amounts:
    """The limits of the containers alone, at their highest: while init containers run, or after them."""
    return _aggregate(
        [each.resources.limits for each in pod.spec.containers],
        [(is_sidecar(each), each.resources.limits) for each in pod.spec.init_containers],
    )


def is_sidecar(container: Container) -> bool:
    """Whether an init container goes on to run beside the others."""
    return container.restart_policy == "Always"


def is_pod_level(resource: str) -> bool:
    """Whether a pod may name an amount of this resource for all its containers together."""
    return resource in ("cpu", "memory") or resource.startswith(_HUGEPAGES)


def _aggregate(containers: list[Mapping[str, Quantity]], init: list[tuple[bool, Mapping[str, Quantity]]]) -> Amounts:
    total: Amounts = {}
    for amounts in containers:
        _add(total, amounts)
    sidecars: Amounts = {}
    peak: Amounts = {}
    for sidecar, amounts in init:
        moment = dict(sidecars)
        _add(moment, amounts)
        if sidecar:
            _add(total, amounts)
            sidecars = moment
        _raise(peak, moment)
    _raise(total, peak)
    return total


def _claim_resources(pod: Pod) -> dict[str, Mapping[str, Quantity]]:
    """By claim, so that a claim that several containers use counts once."""
    statuses = pod.status.node_allocatable_resource_claim_statuses
    return {status.resource_claim_name: status.resources for status in statuses}


def _pod_level(resources: ResourceRequirements | None, which: str) -> Amounts:
    named: Mapping[str, Quantity] = getattr(resources, which) if resources else {}
    return {name: amount for name, amount in named.items() if is_pod_level(name)}


def _effective(asked: Mapping[str, Quantity], seen: ContainerStatus, *, infeasible: bool) -> Amounts:
    result: Amounts = {} if infeasible else dict(asked)
    _raise(result, seen.resources.requests if seen.resources else {})
    _raise(result, seen.allocated_resources)
    return result


def _resize_is_infeasible(pod: Pod) -> bool:
    pending = next((each for each in pod.status.conditions if each.type == _RESIZE_PENDING), None)
    return pending is not None and pending.reason == _INFEASIBLE


def _add(total: Amounts, more: Mapping[str, Quantity]) -> None:
    for name, amount in more.items():
        before = total.get(name)
        total[name] = amount if before is None else before + amount


def _raise(total: Amounts, least: Mapping[str, Quantity]) -> None:
    for name, amount in least.items():
        before = total.get(name)
        if before is None or before < amount:
            total[name] = amount
