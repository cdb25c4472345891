"""Reserve: take the devices of the chosen node, in memory, at once; and give them back.

In:  the pod's needs and the node.
Out: an allocation in flight for each claim that had none; from now on its devices are nobody else's.
"""

from __future__ import annotations

from drakit.allocator import Allocated, AllocationError, NodeError
from drakit.api.objects.pods import Pod
from drakit.scheduler.dynamicresources.state.context import PluginContext
from drakit.scheduler.dynamicresources.state.needs import PodNeeds, Variant
from drakit.scheduler.framework import SUCCESS, PluginStatus

MAX_REMEMBERED = 256


def decide(context: PluginContext, state: PodNeeds, variant: Variant, node: str) -> PluginStatus:
    """Find what each claim gets on a node, as its variant says. All or nothing; nothing is taken."""
    allocator = variant.others.get(node, variant.allocator)
    if allocator is not None:
        answer = allocator.answer(node)
        context.metrics.searched(answer.result.value, answer.steps)
        outcome = allocator.allocate(node, new_uid=context.handle.new_uid)
        if not isinstance(outcome, Allocated):
            words = outcome.words if isinstance(outcome, AllocationError | NodeError) else ""
            return PluginStatus.failed(words or "claim allocation not found for node")
        for position, allocation in zip(variant.positions, outcome.allocations, strict=True):
            state.needs[position].allocation = allocation
    return SUCCESS


def reserve(context: PluginContext, state: PodNeeds, variant: Variant, pod: Pod, node: str) -> PluginStatus:
    """Take what is decided for a node."""
    status = decide(context, state, variant, node)
    if not status.ok:
        return status
    # First the holds that this pod overrides: their devices are its own from now on.
    context.holds.taken(pod, [need.allocation for need in state.needs if need.allocation is not None])
    claims = dict(zip(variant.positions, variant.claims, strict=True))
    for position, need in enumerate(state.needs):
        if need.allocation is not None:
            claim = claims.get(position, need.claim)
            need.flight = context.claims.begin(claim, need.allocation, need.consumer.uid)
    state.reserved = variant
    return SUCCESS


def release(context: PluginContext, state: PodNeeds, pod: Pod) -> None:
    """Give back what is in flight; what was kept for the pod before is so again. Safe to repeat."""
    context.holds.resume(pod.metadata.uid)
    for need in state.needs:
        if need.flight is not None:
            context.claims.end(need.flight)
            need.flight = None
            note_given_back(context, pod.metadata.uid)
    state.reserved = None


def note_given_back(context: PluginContext, uid: str) -> None:
    """Devices are free that were a pod's in memory only."""
    context.given_back.pop(uid, None)
    context.given_back[uid] = None
    while len(context.given_back) > MAX_REMEMBERED:
        del context.given_back[next(iter(context.given_back))]
