"""The plugin that gives pods their devices.

In:  pods with claims, through the extension points of the framework.
Out: claims that are allocated and reserved before their pod is bound.

Each extension point is a module of `points`: `readiness` (pre_enqueue), `preparation` (pre_filter), `filter`,
`postfilter`, `score`, `reservation` and `binding` (pre_bind, unreserve); `hints` has the queueing hints. They pass on a
`state.needs.PodNeeds`. `state.claimusers` and `state.holds` serve preemption.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from drakit.api.objects.pods import Pod
from drakit.base.errors import DrakitError
from drakit.scheduler.config.args import DynamicResourcesArgs
from drakit.scheduler.dynamicresources.extended import Extended, begin_attempt
from drakit.scheduler.dynamicresources.hints import Hints
from drakit.scheduler.dynamicresources.nodeallocatable.charges import Charging
from drakit.scheduler.dynamicresources.points.binding import bind_claim, check_node, unreserve, wait_ready, waits
from drakit.scheduler.dynamicresources.points.filter import refuse_nodes
from drakit.scheduler.dynamicresources.points.postfilter import NOTHING_TO_DO, make_way
from drakit.scheduler.dynamicresources.points.preparation import prepare
from drakit.scheduler.dynamicresources.points.readiness import NotReady, needs_of, pod_claims
from drakit.scheduler.dynamicresources.points.reservation import decide, note_given_back, reserve
from drakit.scheduler.dynamicresources.points.score import can_differ, score_nodes
from drakit.scheduler.dynamicresources.points.steplogs import tell_bound, tell_needs, tell_refused, tell_reserved
from drakit.scheduler.dynamicresources.state.claimusers import ClaimUsers, without_claims
from drakit.scheduler.dynamicresources.state.context import NAME, PluginContext
from drakit.scheduler.dynamicresources.state.needs import PodNeeds, Variant
from drakit.scheduler.framework import (
    SKIP,
    SUCCESS,
    CycleState,
    Handle,
    Interest,
    NodeInfo,
    PluginStatus,
    Rejections,
    RemovePods,
)

_NO_NEEDS = PodNeeds()


class DynamicResources:
    name = NAME

    def __init__(self, handle: Handle, args: DynamicResourcesArgs | None = None) -> None:
        self.context = PluginContext(handle, args)
        self._extended = Extended.shared(handle, self.context)
        self._charging = Charging.shared(handle, self.context.inventory)
        self._hints = Hints(self.context)

    def interests(self) -> Sequence[Interest]:
        return self._hints.interests()

    def pre_enqueue(self, pod: Pod) -> PluginStatus:
        try:
            for _ in pod_claims(self.context, pod):
                continue
        except NotReady as error:
            return PluginStatus.unresolvable(str(error))
        return SUCCESS

    def pre_filter(self, state: CycleState, pod: Pod) -> tuple[PluginStatus, frozenset[str] | None]:
        return self._prepare(self.context.seen_by(pod), state, pod), None

    def _prepare(self, context: PluginContext, state: CycleState, pod: Pod) -> PluginStatus:
        state.put(NAME, _NO_NEEDS)
        try:
            needs = PodNeeds(needs_of(context, pod))
        except NotReady as error:
            return PluginStatus.unresolvable(str(error))
        needs.extended = begin_attempt(context, self._extended, needs, pod)
        if not needs:
            state.skip_score.add(NAME)
            return SKIP
        refusal = prepare(context, pod, needs)
        if refusal is not None:
            return refusal
        self._charging.begin(needs, pod)
        tell_needs(pod, needs)
        if not can_differ(needs, self.context.device_strategy):
            state.skip_score.add(NAME)
        state.put(NAME, needs)
        return SUCCESS

    def filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Rejections:
        needs = _needs(state)
        refused = refuse_nodes(self.context, needs, nodes)
        tell_refused(pod, needs.variant, nodes, refused)
        return refused

    async def post_filter(self, state: CycleState, pod: Pod, rejections: Rejections) -> PluginStatus:
        needs = _needs(state)
        return await make_way(self.context, needs, pod) if needs else NOTHING_TO_DO

    def score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Sequence[int]:
        return score_nodes(_needs(state), nodes, self.context.device_strategy)

    def reserve(self, state: CycleState, pod: Pod, node: NodeInfo) -> PluginStatus:
        needs = _needs(state)
        if not needs:
            return SUCCESS
        variant = _chosen(needs, node)
        if isinstance(variant, PluginStatus):
            return variant
        status = reserve(self.context, needs, variant, pod, node.name)
        tell_reserved(pod, node.name, needs)
        return self._charging.charge(state, needs) if status.ok else status

    async def unreserve(self, state: CycleState, pod: Pod, node: str) -> None:
        needs = _needs(state)
        await unreserve(self.context, needs, pod)
        await self._charging.clear(needs, pod)
        if needs.extended is not None:
            await needs.extended.undo(needs)

    # Preemption

    def suppose(self, pod: Pod) -> RemovePods:
        users, context = ClaimUsers(self.context), self.context.seen_by(pod)

        def without(state: CycleState, gone: Collection[str]) -> None:
            freed = users.freed(gone) if _needs(state) else ()
            if freed:
                self._prepare(context.on(without_claims(context.inventory, freed)), state, pod)

        return without

    def hold(self, state: CycleState, pod: Pod, node: NodeInfo) -> PluginStatus:
        needs = _needs(state)
        if not needs:
            return SUCCESS
        variant = _chosen(needs, node)
        if isinstance(variant, PluginStatus):
            return variant
        status = decide(self.context, needs, variant, node.name)
        if not status.ok:
            return status
        decided = zip(variant.positions, variant.claims, strict=True)
        found = [(claim, needs.needs[position].allocation) for position, claim in decided]
        self.context.holds.put(pod, [(claim, each) for claim, each in found if each is not None])
        return self._charging.charge(state, needs)

    def let_go(self, uid: str) -> None:
        if self.context.holds.drop(uid):
            note_given_back(self.context, uid)

    def waits(self, state: CycleState, pod: Pod, node: str) -> bool:
        return waits(self.context, _needs(state))

    async def pre_bind(self, state: CycleState, pod: Pod, node: str) -> PluginStatus:
        needs = _needs(state)
        if not needs:
            return SUCCESS
        try:
            # A node that went while the pod was reserved: writing claims for it would only have to be undone.
            check_node(self.context, node)
            for need in needs.needs:
                if need.special and needs.extended is not None:
                    await needs.extended.bind(need)
                else:
                    await bind_claim(self.context, need)
            if needs.extended is not None:
                await needs.extended.settle(needs)
            # After the claims, before the pod is bound: the node agent reads it when it sees the pod.
            await self._charging.write(state, needs)
            tell_bound(pod, node, needs)
            if waits(self.context, needs):
                message = f"waiting for binding conditions for device on node {node}"
                self.context.handle.record(pod, "Normal", "BindingConditionsPending", message)
                await wait_ready(self.context, needs, pod, node)
        except DrakitError as error:
            return PluginStatus.failed(error)
        return SUCCESS


def _chosen(needs: PodNeeds, node: NodeInfo) -> Variant | PluginStatus:
    """What is to be allocated on the node that was chosen."""
    return needs.extended.choose(needs, node) if needs.extended is not None else needs.variant


def _needs(state: CycleState) -> PodNeeds:
    needs: PodNeeds = state.get(NAME) or _NO_NEEDS
    return needs
