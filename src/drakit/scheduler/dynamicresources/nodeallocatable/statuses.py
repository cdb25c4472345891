"""What the claims of a pod take of its node, claim by claim, as the pod's status tells it.

In:  the claims that a pod would have on a node, with the devices that each has or would get.
Out: one status per claim that takes something, ordered by claim name. A claim counts once, however many containers use
     it, and also when none does: its devices are gone for everybody else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from drakit.api import NodeAllocatableResourceClaimStatus, Pod
from drakit.api.podclaims import claim_names
from drakit.scheduler.dynamicresources.nodeallocatable.amounts import Amounts, CannotCount, add, device_amounts
from drakit.scheduler.dynamicresources.nodeallocatable.devices import MappedDevices
from drakit.scheduler.dynamicresources.state.needs import ClaimCharge

Statuses = tuple[NodeAllocatableResourceClaimStatus, ...]


def claim_statuses(uses: Iterable[ClaimCharge], devices: MappedDevices) -> Statuses:
    """Raise CannotCount when a claim takes something of the node, and it cannot be told how much."""
    found: dict[str, NodeAllocatableResourceClaimStatus] = {}
    for use in uses:
        name = use.claim.metadata.name
        if amounts := _claim_amounts(use, devices):
            found[name] = NodeAllocatableResourceClaimStatus(
                resource_claim_name=name,
                containers=use.containers,
                resources={resource: amounts[resource] for resource in sorted(amounts)},
            )
    return tuple(found[name] for name in sorted(found))


def containers_by_claim(pod: Pod) -> dict[str, tuple[str, ...]]:
    """The containers that use each claim of a pod, in the order in which they start; each once."""
    names = claim_names(pod)
    users: dict[str, dict[str, None]] = {}
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        for use in container.resources.claims:
            if use.name in names:
                users.setdefault(names[use.name], {})[container.name] = None
    return {claim: tuple(containers) for claim, containers in users.items()}


def with_statuses(pod: Pod, statuses: Sequence[NodeAllocatableResourceClaimStatus]) -> Pod:
    """The pod with these statuses in place of those that it has."""
    if pod.status.node_allocatable_resource_claim_statuses == tuple(statuses):
        return pod
    status = msgspec.structs.replace(pod.status, node_allocatable_resource_claim_statuses=tuple(statuses))
    return msgspec.structs.replace(pod, status=status)


def renamed(statuses: Statuses, old: str, new: str) -> Statuses:
    """With another name for one claim: that of the special claim is known once the server has made it."""
    found = [
        msgspec.structs.replace(each, resource_claim_name=new) if each.resource_claim_name == old else each
        for each in statuses
    ]
    return tuple(sorted(found, key=lambda each: each.resource_claim_name))


def _claim_amounts(use: ClaimCharge, devices: MappedDevices) -> Amounts:
    """What the claim takes of the node; empty if no published device of it takes anything."""
    results = use.allocation.devices.results
    if not any(devices.in_pool(result.driver, result.pool) for result in results):
        return {}
    published = [devices.find(result.driver, result.pool, result.device) for result in results]
    if not any(device is not None and device.node_allocatable_resource_mappings for device in published):
        return {}
    total: Amounts = {}
    for result, device in zip(results, published, strict=True):
        try:
            if device is None:
                raise CannotCount(f"device {result.device} not found in pool {result.pool}")
            add(total, device_amounts(device, result))
        except CannotCount as error:
            meta = use.claim.metadata
            raise CannotCount(f"claim {meta.namespace}/{meta.name}, device {result.device}: {error}") from None
    return total
