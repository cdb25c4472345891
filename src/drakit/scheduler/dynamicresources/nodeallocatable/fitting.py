"""Whether a node has what a pod takes of it together with its claims.

In:  a pod, a node with its pods, and what the pod's claims would take there.
Out: none, or a refusal in the words of Kubernetes.

The demand is the sum that the node's ledger will count for the pod once it is there: `requests_of` is the one for both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from drakit.api import Pod, ResourceClaim
from drakit.api.footprint import container_requests, is_pod_level
from drakit.scheduler.dynamicresources.nodeallocatable.amounts import add
from drakit.scheduler.dynamicresources.nodeallocatable.statuses import Statuses, with_statuses
from drakit.scheduler.framework import NodeInfo, Status
from drakit.scheduler.framework.nodes import requests_of

_HUGEPAGES = "hugepages-"
_ORDER = ("cpu", "memory", "ephemeral-storage")


def refuse_shared(pod: Pod, claims: Sequence[ResourceClaim], nodes: Iterable[NodeInfo]) -> Status | None:
    """Refuse a claim that another pod, bound or assumed, takes its share of a node through."""
    holders = {claim.metadata.name: _reserved(claim) for claim in claims}
    for node in nodes:
        for uid, other in node.pods.items():
            for status in other.status.node_allocatable_resource_claim_statuses:
                if status.resource_claim_name in holders and other.metadata.namespace == pod.metadata.namespace:
                    holders[status.resource_claim_name].add(uid)
    for name in sorted(holders):
        if len(holders[name]) > 1:
            return Status.unresolvable(f"node allocatable resource claim {name} shared by multiple pods")
        if holders[name] - {pod.metadata.uid}:
            return Status.unresolvable(f"node allocatable resource claim {name} is already used by another pod")
    return None


def refuse_over_budget(pod: Pod, statuses: Statuses) -> Status | None:
    """Refuse when containers and claims together take more than the pod's own requests allow."""
    budget = pod.spec.resources.requests if pod.spec.resources else {}
    if not budget:
        return None
    together = container_requests(pod)
    for status in statuses:
        add(together, dict(status.resources))
    for name in sorted(budget):
        if is_pod_level(name) and name in together and together[name] > budget[name]:
            return Status.unresolvable(
                f"pod level request for {name} is insufficient to cover the aggregated container and "
                "node-allocatable DRA requests"
            )
    return None


def refuse_overfull(pod: Pod, node: NodeInfo, statuses: Statuses) -> Status | None:
    """Refuse when the node has less left; for good when it never has that much."""
    demand = requests_of(with_statuses(pod, statuses))
    short = [name for name in _counted(demand) if demand[name] > node.allocatable.get(name, 0) - _used(node, name)]
    if not short:
        return None
    reasons = [f"Insufficient {name}" for name in short]
    if any(demand[name] > node.allocatable.get(name, 0) for name in short):
        return Status.unresolvable(*reasons)
    return Status.unschedulable(*reasons)


def _counted(demand: Mapping[str, int]) -> list[str]:
    asked = [name for name in _ORDER if demand.get(name, 0) > 0]
    return asked + sorted(name for name in demand if name.startswith(_HUGEPAGES) and demand[name] > 0)


def _used(node: NodeInfo, name: str) -> int:
    return node.requested.get(name, 0)


def _reserved(claim: ResourceClaim) -> set[str]:
    return {each.uid for each in claim.status.reserved_for if each.resource == "pods" and not each.api_group}
