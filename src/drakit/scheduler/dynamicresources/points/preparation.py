"""PreFilter: can the pod be scheduled at all now, and what has to be allocated?

In:  the pod's needs.
Out: a status, and needs with a variant: what is allocated already, in use, in flight, or to be allocated.
"""

from __future__ import annotations

from collections.abc import Sequence

from drakit.allocator import Allocator
from drakit.api.objects.claims import ResourceClaim
from drakit.api.objects.pods import Pod
from drakit.api.podclaims import is_reserved_for_pod
from drakit.client import PODS
from drakit.scheduler.dynamicresources.points.readiness import refuse_requests
from drakit.scheduler.dynamicresources.state.bindingconditions import is_hopeless
from drakit.scheduler.dynamicresources.state.context import PluginContext
from drakit.scheduler.dynamicresources.state.needs import ClaimNeed, PodNeeds, Variant
from drakit.scheduler.dynamicresources.state.overlaps import find_overlap
from drakit.scheduler.framework import PluginStatus

MAX_CONSUMERS = 256
IN_USE = PluginStatus.unresolvable("resourceclaim in use")


def prepare(context: PluginContext, pod: Pod, state: PodNeeds) -> PluginStatus | None:
    """Find out what has to be allocated; a status when the pod has to wait."""
    positions: list[int] = []
    broken: set[int] = set()
    for position, need in enumerate(state.needs):
        refusal = _look_at(context, pod, need)
        if refusal is not None:
            return refusal
        if need.is_allocated:
            if _is_broken(context, need.claim):
                broken.add(position)
        elif need.allocation is None and not need.special:
            positions.append(position)
    state.broken = frozenset(broken)
    state.variant = make_variant(context, [state.needs[each].claim for each in positions], positions)
    return None


def make_variant(context: PluginContext, claims: Sequence[ResourceClaim], positions: Sequence[int]) -> Variant:
    """Claims to allocate, with what knows where they can be. Nothing to allocate: no allocator."""
    if not claims:
        return Variant()
    # An attempt never gives up control, so the inventory stays as it is until its node is chosen.
    allocator = Allocator(context.inventory, claims, timer=context.timer, snapshot=False)
    return Variant(claims, positions, allocator)


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


def _is_broken(context: PluginContext, claim: ResourceClaim) -> bool:
    """Whether the claim must be deallocated before any node can fit."""
    if context.binding_conditions and is_hopeless(claim, context.binding_timeout, context.clock.now()):
        return True
    return find_overlap(context.inventory, claim) is not None and not _is_running(context, claim)


def _is_running(context: PluginContext, claim: ResourceClaim) -> bool:
    """Whether somebody who uses the claim is bound: then its devices are its own, and the other one has to go."""
    pods = context.handle.informers.of(PODS).cache.all(claim.metadata.namespace)
    groups = context.groups is not None
    return any(each.view.spec.node_name and is_reserved_for_pod(claim, each.view, groups=groups) for each in pods)
