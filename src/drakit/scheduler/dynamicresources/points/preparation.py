"""PreFilter: can the pod be scheduled at all now, and what has to be allocated?

In:  the pod's needs.
Out: a status, and needs with a variant: what is allocated already, in use, in flight, or to be allocated.
"""

from __future__ import annotations

from collections.abc import Sequence

from drakit.allocator import Allocator, repelling_taint
from drakit.api.objects.claims import ResourceClaim
from drakit.api.objects.pods import Pod
from drakit.api.podclaims import is_reserved_for_pod
from drakit.api.requests import results_of
from drakit.client import PODS
from drakit.scheduler.dynamicresources.points.readiness import refuse_requests
from drakit.scheduler.dynamicresources.state.bindingconditions import is_hopeless
from drakit.scheduler.dynamicresources.state.context import PluginContext
from drakit.scheduler.dynamicresources.state.needs import ClaimNeed, PodNeeds, Variant
from drakit.scheduler.dynamicresources.state.overlaps import find_overlap
from drakit.scheduler.framework import PluginStatus

MAX_CONSUMERS = 256
NOT_AVAILABLE = PluginStatus.unresolvable("resourceclaim not available on the node")
IN_USE = PluginStatus.unresolvable("resourceclaim in use")


def prepare(context: PluginContext, pod: Pod, state: PodNeeds) -> PluginStatus | None:
    """Find out what has to be allocated; a status when the pod has to wait."""
    positions: list[int] = []
    broken: dict[int, PluginStatus] = {}
    for position, need in enumerate(state.needs):
        refusal = _look_at(context, pod, need)
        if refusal is not None:
            return refusal
        if need.is_allocated:
            if why := _why_broken(context, need.claim):
                broken[position] = why
        elif need.allocation is None and not need.special:
            positions.append(position)
    state.broken = broken
    state.variant = make_variant(context, [state.needs[each].claim for each in positions], positions)
    return None


def make_variant(context: PluginContext, claims: Sequence[ResourceClaim], positions: Sequence[int]) -> Variant:
    """Claims to allocate, with what knows where they can be. Nothing to allocate: no allocator."""
    if not claims:
        return Variant()
    # An attempt never gives up control, so the inventory stays as it is until its node is chosen.
    budget = context.budget()
    allocator = Allocator(context.inventory, claims, timer=budget.begin if budget else None, snapshot=False)
    if budget is not None and context.background.is_under_way(allocator.cost_key):
        budget.spend()
    return Variant(claims, positions, allocator, budget=budget)


def _look_at(context: PluginContext, pod: Pod, need: ClaimNeed) -> PluginStatus | None:
    claim = need.claim
    if need.is_allocated and not _can_be_used(context, claim, pod):
        return IN_USE
    flight = context.claims.flight(claim.metadata.uid)
    if flight is not None:
        # A member of the same group is about to store it: this pod shares that allocation.
        if need.consumer.resource == "podgroups" and flight.consumer == need.consumer.uid:
            need.allocation = flight.allocation
            return None
        where = f"{claim.metadata.namespace}/{claim.metadata.name}"
        return PluginStatus.pending(f"resource claim {where} is in the process of being allocated")
    return None if need.is_allocated or need.special else refuse_requests(context, claim)


def _can_be_used(context: PluginContext, claim: ResourceClaim, pod: Pod) -> bool:
    if len(claim.status.reserved_for) < MAX_CONSUMERS:
        return True
    return is_reserved_for_pod(claim, pod, groups=context.groups is not None)


def _why_broken(context: PluginContext, claim: ResourceClaim) -> PluginStatus | None:
    """Why the claim must be deallocated, or its devices change, before any node can fit."""
    if context.binding_conditions and is_hopeless(claim, context.binding_timeout, context.clock.now()):
        return NOT_AVAILABLE
    if find_overlap(context.inventory, claim) is not None and not _is_running(context, claim):
        return NOT_AVAILABLE
    # A taint that came after the allocation holds for pods that come after it: whoever runs may stay, by its effect.
    tainted = repelling_taint(context.inventory, results_of(claim))
    if tainted is None:
        return None
    result, taint = tainted
    where = f"{claim.metadata.namespace}/{claim.metadata.name}"
    told = f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
    return PluginStatus.unresolvable(f"device {result.device} of resourceclaim {where} has taint {told}")


def _is_running(context: PluginContext, claim: ResourceClaim) -> bool:
    """Whether somebody who uses the claim is bound: then its devices are its own, and the other one has to go."""
    pods = context.handle.informers.of(PODS).cache.all(claim.metadata.namespace)
    groups = context.groups is not None
    return any(each.view.spec.node_name and is_reserved_for_pod(claim, each.view, groups=groups) for each in pods)
