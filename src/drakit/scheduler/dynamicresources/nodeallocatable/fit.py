"""Whether a node has what a pod takes of it together with its claims.

In:  a pod, a node with its pods, and what the pod's claims would take there.
Out: none, or a refusal in the words of Kubernetes.

The demand is the sum that the node's ledger will count for the pod once it is there: `requests_of` is the one for both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from drakit.api import Pod, ResourceClaim
from drakit.api.footprint import container_requests, is_pod_level
from drakit.scheduler.dynamicresources.nodeallocatable.amounts import add
from drakit.scheduler.dynamicresources.nodeallocatable.statuses import Statuses, with_statuses
from drakit.scheduler.framework import NodeInfo, PluginStatus
from drakit.scheduler.framework.nodes import requests_of

Demand = tuple[tuple[str, int], ...]
"""Resources with amounts, in the units of nodes."""

INSUFFICIENT = "Insufficient "
_HUGEPAGES = "hugepages-"
_ORDER = ("cpu", "memory", "ephemeral-storage")


def refuse_shared(pod: Pod, claims: Sequence[ResourceClaim], nodes: Iterable[NodeInfo]) -> PluginStatus | None:
    """Refuse a claim that another pod, bound or assumed, takes its share of a node through."""
    holders = {claim.metadata.name: _reserved(claim) for claim in claims}
    for node in nodes:
        for uid, other in node.pods.items():
            for status in other.status.node_allocatable_resource_claim_statuses:
                if status.resource_claim_name in holders and other.metadata.namespace == pod.metadata.namespace:
                    holders[status.resource_claim_name].add(uid)
    for name in sorted(holders):
        if len(holders[name]) > 1:
            return PluginStatus.unresolvable(f"node allocatable resource claim {name} shared by multiple pods")
        if holders[name] - {pod.metadata.uid}:
            return PluginStatus.unresolvable(f"node allocatable resource claim {name} is already used by another pod")
    return None


def refuse_over_budget(pod: Pod, statuses: Statuses) -> PluginStatus | None:
    """Refuse when containers and claims together take more than the pod's own requests allow."""
    budget = pod.spec.resources.requests if pod.spec.resources else {}
    if not budget:
        return None
    together = container_requests(pod)
    for status in statuses:
        add(together, dict(status.resources))
    for name in sorted(budget):
        if is_pod_level(name) and name in together and together[name] > budget[name]:
            return PluginStatus.unresolvable(
                f"pod level request for {name} is insufficient to cover the aggregated container and "
                "node-allocatable DRA requests"
            )
    return None


def demand_of(pod: Pod, statuses: Statuses) -> Demand:
    """What the ledger of a node counts for the pod, as far as devices may take it too; in the order of telling."""
    amounts = requests_of(with_statuses(pod, statuses))
    names = (*_ORDER, *sorted(name for name in amounts if name.startswith(_HUGEPAGES)))
    return tuple((name, amounts[name]) for name in names if amounts.get(name, 0) > 0)


def refuse_overfull(node: NodeInfo, demand: Demand) -> PluginStatus | None:
    """Refuse when the node has less left; for good when it never has that much."""
    allocatable, used = node.allocatable, node.requested
    short = [each for each in demand if each[1] > allocatable.get(each[0], 0) - used.get(each[0], 0)]
    if not short:
        return None
    reasons = [f"{INSUFFICIENT}{name}" for name, _ in short]
    if any(amount > allocatable.get(name, 0) for name, amount in short):
        return PluginStatus.unresolvable(*reasons)
    return PluginStatus.unschedulable(*reasons)


def _reserved(claim: ResourceClaim) -> set[str]:
    return {each.uid for each in claim.status.reserved_for if each.resource == "pods" and not each.api_group}
