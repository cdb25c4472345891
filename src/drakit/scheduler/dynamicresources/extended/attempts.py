"""The extended resources of one pod in one attempt, from extension point to extension point.

In:  the pod's needs, nodes.
Out: nodes by variant of the claims to allocate; when a node is chosen, the special claim as one more need; when the pod
     is bound, that claim at the server and its name in the pod's status.

A special claim of an earlier attempt is a need from the beginning, and no node can have another one: one that cannot be
used goes first. One that is made now becomes a need when a node is chosen: until then it differs from node to node.
"""

from __future__ import annotations

from collections.abc import Sequence

from drakit.api import Pod, ResourceClaim
from drakit.api.objects.pods import ContainerExtendedResourceRequest
from drakit.api.podclaims import pod_consumer
from drakit.base.errors import DrakitError
from drakit.scheduler.dynamicresources.extended.needs import STALE, Need, NodeGroup
from drakit.scheduler.dynamicresources.extended.resources import Extended
from drakit.scheduler.dynamicresources.extended.special import is_in_memory, is_provided
from drakit.scheduler.dynamicresources.points.binding import bind_claim
from drakit.scheduler.dynamicresources.points.preparation import make_variant
from drakit.scheduler.dynamicresources.points.score import rank_nodes
from drakit.scheduler.dynamicresources.state.context import PluginContext
from drakit.scheduler.dynamicresources.state.errors import CannotBind
from drakit.scheduler.dynamicresources.state.needs import ClaimNeed, PodNeeds, Variant
from drakit.scheduler.framework import NodeInfo, PluginStatus

DELETED = PluginStatus.unschedulable("deletion of ResourceClaim completed")


class ExtendedAttempt:
    """Made by `begin_attempt`. `position` is where the special claim is among the pod's needs: at their end."""

    def __init__(self, context: PluginContext, extended: Extended, need: Need, position: int) -> None:
        self._context = context
        self._extended = extended
        self._need = need
        self._position = position
        self._variants: dict[int, Variant] = {}
        self._mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
        self._recorded = need.pod.status.extended_resource_claim_status is not None

    @property
    def pod(self) -> Pod:
        return self._need.pod

    @property
    def containers(self) -> tuple[str, ...]:
        """The containers that get devices on the node that was chosen."""
        return tuple(dict.fromkeys(each.container_name for each in self._mappings))

    # Filter and reserve

    def groups(
        self, state: PodNeeds, nodes: Sequence[NodeInfo], refused: dict[str, PluginStatus]
    ) -> list[tuple[Variant, Sequence[NodeInfo]]]:
        """Nodes by what has to be allocated on them."""
        rejected, groups = self._need.split(nodes)
        refused.update(rejected)
        return [(self._variant(state, group), self._providing(group, refused)) for group in groups]

    def rank_nodes(self, state: PodNeeds, nodes: Sequence[NodeInfo]) -> list[int]:
        """The raw score of each node, before normalization."""
        ranks: dict[str, int] = {}
        for variant, alike in self.groups(state, nodes, {}):
            ranks.update(zip((node.name for node in alike), rank_nodes(state, variant, alike), strict=True))
        return [ranks.get(node.name, 0) for node in nodes]

    def choose(self, state: PodNeeds, node: NodeInfo) -> Variant | PluginStatus:
        """What is to be allocated on the node that was chosen; the special claim is a need from now on."""
        _, groups = self._need.split([node])
        if not groups:
            return PluginStatus.failed(f"extended resource claim not found for node {node.name}")
        (group,) = groups
        self._mappings = group.mappings
        if self._need.stored is None:
            del state.needs[self._position :]
            if group.claim is not None:
                state.needs.append(ClaimNeed(group.claim, pod_consumer(self.pod), special=True))
        return self._variant(state, group)

    def _variant(self, state: PodNeeds, group: NodeGroup) -> Variant:
        claim = group.claim
        if claim is None or claim.status.allocation is not None:
            return state.variant
        found = self._variants.get(id(claim))
        if found is None:
            base = state.variant
            found = make_variant(self._context, (*base.claims, claim), (*base.positions, self._position))
            self._variants[id(claim)] = found
        return found

    def _providing(self, group: NodeGroup, refused: dict[str, PluginStatus]) -> Sequence[NodeInfo]:
        """The nodes that still have the devices of a claim that is allocated already."""
        claim = group.claim
        if claim is None or claim.status.allocation is None:
            return group.nodes
        inventory = self._context.inventory
        kept = [node for node in group.nodes if is_provided(claim, inventory, node.name)]
        refused.update((node.name, STALE) for node in group.nodes if node not in kept)
        return kept

    # Binding

    async def bind(self, need: ClaimNeed) -> None:
        """Claim, finalizer, claim status, pod status. Raise DrakitError."""
        if is_in_memory(need.claim):
            await self._create(need)
        await bind_claim(self._context, need)
        self._recorded = True
        try:
            await self._extended.writing.record(self.pod, need.claim, self._mappings)
        except DrakitError as error:
            raise CannotBind(f"update pod {_name(self.pod)} ExtendedResourceClaimStatus: {error}") from error

    async def _create(self, need: ClaimNeed) -> None:
        try:
            made = await self._extended.writing.create(self.pod, need.claim)
        except DrakitError as error:
            where = f"{self.pod.metadata.namespace}/{need.claim.metadata.generate_name}"
            raise CannotBind(f"create claim for extended resources {where}: {error}") from error
        need.claim = made
        self._context.claims.assume(made)
        if need.flight is not None:
            self._context.claims.rename(need.flight, made)

    async def settle(self, state: PodNeeds) -> None:
        """Remove a stale special claim from the pod's status: undoing an earlier attempt may have failed. As `bind`."""
        if self._recorded and not any(need.special for need in state.needs):
            await self._extended.writing.clear(self.pod)
            self._recorded = False

    # The way back

    async def undo(self, state: PodNeeds) -> None:
        """Take back what was written. Never fails; safe to repeat."""
        claim = self._stored_in(state)
        gone = await self._extended.writing.take_back(self.pod, claim, recorded=claim is not None and self._recorded)
        if claim is not None and gone:
            self._forget(state, claim)

    async def make_way(self, state: PodNeeds) -> PluginStatus | None:
        """Remove a claim of an earlier attempt: the pod fits nowhere with it."""
        claim = self._stored_in(state)
        if claim is None:
            return None
        try:
            await self._extended.writing.remove(self.pod, claim, recorded=self._recorded)
        except DrakitError as error:
            return PluginStatus.failed(error)
        self._forget(state, claim)
        return DELETED

    def _stored_in(self, state: PodNeeds) -> ResourceClaim | None:
        """The special claim that the server has."""
        found = next((need.claim for need in state.needs if need.special), None)
        return found if found is not None and not is_in_memory(found) else None

    def _forget(self, state: PodNeeds, claim: ResourceClaim) -> None:
        del state.needs[self._position :]
        self._recorded = False
        self._extended.forget(self.pod, claim)


def begin_attempt(
    context: PluginContext, extended: Extended | None, state: PodNeeds, pod: Pod
) -> ExtendedAttempt | None:
    """What the pod asks of devices by plain resource names, if it does; a claim that it has already becomes a need."""
    need = extended.need_of(pod) if extended is not None else None
    if extended is None or need is None:
        return None
    attempt = ExtendedAttempt(context, extended, need, len(state.needs))
    if need.stored is not None:
        state.needs.append(ClaimNeed(need.stored, pod_consumer(pod), special=True))
    return attempt


def _name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
