"""PostFilter: when the pod fits nowhere, does an allocation that nobody uses stand in the way?

In:  the pod's needs after `filter`: the allocated claims that kept it from a node.
Out: one of them deallocated, or the pod's group taken off its claims; the pod is woken by that change.
"""

from __future__ import annotations

import logging

from drakit.api.objects.claims import ResourceClaim
from drakit.api.objects.pods import Pod
from drakit.api.objects.workloads import PodGroup
from drakit.api.podclaims import ClaimNotCreated, ClaimUnsupported, group_claim_name, pod_group_name
from drakit.api.requests import is_reserved_for
from drakit.base.errors import DrakitError
from drakit.client import V
from drakit.scheduler.dynamicresources.points.writes import deallocate, drop_reservation
from drakit.scheduler.dynamicresources.state.context import PluginContext
from drakit.scheduler.dynamicresources.state.needs import PodNeeds
from drakit.scheduler.framework import PluginStatus

log = logging.getLogger("drakit.scheduler")

NOTHING_TO_DO = PluginStatus.unschedulable("no new claims to deallocate")
DEALLOCATED = PluginStatus.unschedulable("deallocation of ResourceClaim completed")
UNRESERVED = PluginStatus.unresolvable("ResourceClaim unreserved for PodGroup")
STILL_NOT = PluginStatus.unschedulable("still not schedulable")


async def make_way(context: PluginContext, state: PodNeeds, pod: Pod) -> PluginStatus:
    for claim in _in_the_way(context, state, pod):
        try:
            written = await deallocate(context, claim)
        except DrakitError as error:
            return PluginStatus.failed(error)
        context.claims.assume(written)
        return DEALLOCATED
    if state.extended is not None and (done := await state.extended.make_way(state)) is not None:
        return done
    return await _free_group_claims(context, pod) or STILL_NOT


def _in_the_way(context: PluginContext, state: PodNeeds, pod: Pod) -> list[ResourceClaim]:
    """Claims that may be deallocated, in any order: there is no better way to pick one than chance."""
    found = [state.needs[position] for position in sorted(state.unavailable)]
    claims = [need.claim for need in found if not need.special and _is_free(need.claim, pod)]
    context.handle.random.shuffle(claims)
    return claims


def _is_free(claim: ResourceClaim, pod: Pod) -> bool:
    return {each.uid for each in claim.status.reserved_for} <= {pod.metadata.uid}


async def _free_group_claims(context: PluginContext, pod: Pod) -> PluginStatus | None:
    """Nobody of the group runs, and it does not fit: let its claims be allocated anew."""
    name, group = context.group_of(pod)
    if name is None or _has_placed(context, pod, name):
        return None
    if group is None:
        return PluginStatus.failed(f'podgroup.scheduling.k8s.io "{name}" not found')
    for claim in _group_claims(context, group):
        if claim.status.allocation is None or not is_reserved_for(claim, group.metadata.uid):
            continue
        try:
            context.claims.assume(await drop_reservation(context, claim, group.metadata.uid))
        except DrakitError as error:
            where = f"{claim.metadata.namespace}/{claim.metadata.name}"
            log.log(V[1], "taking group %s off claim %s: %s", name, where, error)
            continue
        return UNRESERVED
    return None


def _has_placed(context: PluginContext, pod: Pod, group: str) -> bool:
    """Whether a member of the group is on a node, bound or assumed; also on one whose Node object is gone.

    Its containers may run there for a while yet, with the devices of the claim.
    """
    return any(
        pod_group_name(each) == group and each.metadata.namespace == pod.metadata.namespace
        for each in context.handle.nodes.placed()
    )


def _group_claims(context: PluginContext, group: PodGroup) -> list[ResourceClaim]:
    found: list[ResourceClaim] = []
    for entry in group.spec.resource_claims:
        try:
            name = group_claim_name(group, entry)
        except (ClaimNotCreated, ClaimUnsupported):
            continue
        claim = context.claims.get(group.metadata.namespace, name) if name else None
        owner = claim.metadata.controller if claim else None
        ours = entry.resource_claim_name is not None or (owner is not None and owner.uid == group.metadata.uid)
        if claim is not None and ours:
            found.append(claim)
    return found
