"""What the plugin did, for people who look for a reason: steps at `-v 4`, nodes and devices at `-v 5`.

In:  the results of each extension point.
Out: lines in the words of Kubernetes' troubleshooting: `Allocating one device`, `Device capacity not enough`.

Nothing is worked out unless somebody reads it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from drakit.allocator import Allocator, Cause, NodeError, Unsatisfiable
from drakit.api.objects.claims import ResourceClaim
from drakit.api.objects.pods import Pod
from drakit.client import V
from drakit.scheduler.dynamicresources.state.needs import PodNeeds, Variant
from drakit.scheduler.framework import NodeInfo, PluginStatus

log = logging.getLogger("drakit.scheduler")

_MOST_NODES = 20
"""Nodes that are told of one by one; a thousand lines help nobody."""
_NOT_ENOUGH = "Device capacity not enough"


def tell_needs(pod: Pod, needs: PodNeeds) -> None:
    """PreFilter: which claims are there, and which have to be allocated."""
    if log.isEnabledFor(V[4]):
        there = [_name(each.claim) for each in needs.needs if each.is_allocated]
        wanted = [_name(each) for each in needs.variant.claims]
        log.log(V[4], "pod %s: claims allocated: %s; to allocate: %s", _pod(pod), _listed(there), _listed(wanted))


def tell_refused(pod: Pod, variant: Variant, nodes: Sequence[NodeInfo], refused: Mapping[str, PluginStatus]) -> None:
    """Filter: how many nodes fit, and of those that do not, why."""
    if not log.isEnabledFor(V[4]):
        return
    log.log(V[4], "pod %s: %d of %d nodes fit its claims", _pod(pod), len(nodes) - len(refused), len(nodes))
    if log.isEnabledFor(V[5]):
        for name, status in list(refused.items())[:_MOST_NODES]:
            log.log(V[5], "pod %s: node %s: %s", _pod(pod), name, status.message)
            if variant.allocator is not None:
                _tell_devices(pod, variant.allocator, name)


def _tell_devices(pod: Pod, allocator: Allocator, node: str) -> None:
    outcome = allocator.allocate(node, explain=True)
    reasons = outcome.reasons if isinstance(outcome, Unsatisfiable | NodeError) else None
    for claim in reasons.claims if reasons is not None else ():
        for request in claim.requests:
            for refusal in request.refusals:
                said = f"{_NOT_ENOUGH}: {refusal.detail}" if refusal.cause is Cause.CAPACITY else refusal.detail
                where = f"claim {claim.claim}, request {request.request}, node {node}"
                log.log(V[5], "pod %s: %s: %s: %s", _pod(pod), where, ", ".join(refusal.devices), said)


def tell_reserved(pod: Pod, node: str, needs: PodNeeds) -> None:
    """Reserve: what each claim gets."""
    if not log.isEnabledFor(V[4]):
        return
    for claim, allocation in [(each.claim, each.allocation) for each in needs.needs]:
        if allocation is None:
            continue
        devices = [f"{each.driver}/{each.pool}/{each.device}" for each in allocation.devices.results]
        log.log(V[4], "pod %s: claim %s gets %s on node %s", _pod(pod), _name(claim), _listed(devices), node)
        for each in allocation.devices.results:
            taken = {name: str(amount) for name, amount in each.consumed_capacity.items()}
            said = "Allocating one device: request %s, device %s, capacities %s"
            log.log(V[5], said, each.request, each.device, taken)


def tell_bound(pod: Pod, node: str, needs: PodNeeds) -> None:
    """PreBind: the claims are stored and reserved."""
    if needs.needs and log.isEnabledFor(V[4]):
        names = _listed([_name(each.claim) for each in needs.needs])
        log.log(V[4], "pod %s: claims %s are stored and reserved for node %s", _pod(pod), names, node)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _name(claim: ResourceClaim) -> str:
    return f"{claim.metadata.namespace}/{claim.metadata.name or claim.metadata.generate_name}"


def _pod(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
