"""Why the claims of a pod cannot be allocated on a node, request by request and device by device.

In:  the plugin's context, a pod, a node.
Out: the allocator's reasons; or that the claims are allocated, or could be; or what keeps the pod from all nodes.

Nothing is taken: the answer is for people, and holds for the moment in which it was asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from drakit.allocator import Allocated, Allocation, AllocationError, NodeError, Reasons, allocate
from drakit.api.objects.claims import ResourceClaim
from drakit.api.objects.pods import Pod
from drakit.scheduler.dynamicresources.points.preparation import prepare
from drakit.scheduler.dynamicresources.points.readiness import NotReady, needs_of
from drakit.scheduler.dynamicresources.state.context import PluginContext
from drakit.scheduler.dynamicresources.state.needs import PodNeeds, UsableNodes
from drakit.scheduler.framework import NodeInfo


class Explanation(msgspec.Struct, frozen=True):
    """`fits`: the pod's claims are allocated there, or can be. Otherwise `message` and `reasons` say why not."""

    fits: bool
    message: str = ""
    reasons: Reasons | None = None


def explain(context: PluginContext, pod: Pod, node: NodeInfo, special: Sequence[ResourceClaim] = ()) -> Explanation:
    """`special` are claims that the pod needs on this node beside its own."""
    try:
        state = PodNeeds(needs_of(context, pod))
    except NotReady as error:
        return Explanation(False, str(error))
    refusal = prepare(context, pod, state)
    if refusal is not None:
        return Explanation(False, refusal.message)
    for need in state.needs:
        allocation = need.claim.status.allocation
        if allocation and allocation.node_selector and not UsableNodes(allocation.node_selector).includes(node):
            where = f"{need.claim.metadata.namespace}/{need.claim.metadata.name}"
            return Explanation(False, f"claim {where} is allocated, and cannot be used on this node")
    claims = (*state.variant.claims, *special)
    if not claims:
        return Explanation(True)
    new_uid = context.handle.new_uid
    return _explained(allocate(context.inventory, node.name, claims, new_uid=new_uid, explain=True))


def _explained(outcome: Allocation) -> Explanation:
    match outcome:
        case Allocated():
            return Explanation(True)
        case NodeError(message=message, reasons=reasons):
            return Explanation(False, message, reasons)
        case AllocationError(message=message):
            return Explanation(False, message)
        case _:
            return Explanation(False, "cannot allocate all claims", getattr(outcome, "reasons", None))
