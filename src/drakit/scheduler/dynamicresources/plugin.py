"""The plugin that gives pods their devices.

In:  pods with claims, through the extension points of the framework.
Out: claims that are allocated and reserved before their pod is bound.

Each extension point is a module: `readiness` (pre_enqueue), `preparing` (pre_filter), `filtering`, `postfiltering`,
`scoring`, `reserving`, `binding` (pre_bind, unreserve), `hints`. What they pass on about a pod is `needs.PodNeeds`.
"""

from __future__ import annotations

from collections.abc import Sequence

from drakit.api.pods import Pod
from drakit.base.errors import DrakitError
from drakit.scheduler.config.args import DynamicResourcesArgs
from drakit.scheduler.dynamicresources.binding import bind_claim, unreserve, wait_ready, waits
from drakit.scheduler.dynamicresources.context import NAME, Context
from drakit.scheduler.dynamicresources.extended import Extended, begin_attempt
from drakit.scheduler.dynamicresources.filtering import refuse_nodes
from drakit.scheduler.dynamicresources.hints import Hints
from drakit.scheduler.dynamicresources.needs import PodNeeds
from drakit.scheduler.dynamicresources.nodeallocatable.charging import Charging
from drakit.scheduler.dynamicresources.postfiltering import NOTHING_TO_DO, make_way
from drakit.scheduler.dynamicresources.preparing import prepare
from drakit.scheduler.dynamicresources.readiness import NotReady, needs_of, pod_claims
from drakit.scheduler.dynamicresources.reserving import reserve
from drakit.scheduler.dynamicresources.scoring import can_differ, score_nodes
from drakit.scheduler.framework import SKIP, SUCCESS, CycleState, Handle, Interest, NodeInfo, Rejections, Status

_NO_NEEDS = PodNeeds()


class DynamicResources:
    name = NAME

    def __init__(self, handle: Handle, args: DynamicResourcesArgs | None = None) -> None:
        self.context = Context(handle, args)
        self._extended = Extended.shared(handle, self.context)
        self._charging = Charging.shared(handle, self.context.inventory)
        self._hints = Hints(self.context)

    def interests(self) -> Sequence[Interest]:
        return self._hints.interests()

    def pre_enqueue(self, pod: Pod) -> Status:
        try:
            for _ in pod_claims(self.context, pod):
                continue
        except NotReady as error:
            return Status.unresolvable(str(error))
        return SUCCESS

    def pre_filter(self, state: CycleState, pod: Pod) -> tuple[Status, frozenset[str] | None]:
        state.put(NAME, _NO_NEEDS)
        try:
            needs = PodNeeds(needs_of(self.context, pod))
        except NotReady as error:
            return Status.unresolvable(str(error)), None
        needs.extended = begin_attempt(self.context, self._extended, needs, pod)
        if not needs:
            state.skip_score.add(NAME)
            return SKIP, None
        refusal = prepare(self.context, pod, needs)
        if refusal is not None:
            return refusal, None
        self._charging.begin(needs, pod)
        if not can_differ(needs, self.context.device_strategy):
            state.skip_score.add(NAME)
        state.put(NAME, needs)
        return SUCCESS, None

    def filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Rejections:
        return refuse_nodes(self.context, _needs(state), nodes)

    async def post_filter(self, state: CycleState, pod: Pod, rejections: Rejections) -> Status:
        needs = _needs(state)
        return await make_way(self.context, needs, pod) if needs else NOTHING_TO_DO

    def score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Sequence[int]:
        return score_nodes(_needs(state), nodes, self.context.device_strategy)

    def reserve(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        needs = _needs(state)
        if not needs:
            return SUCCESS
        variant = needs.extended.choose(needs, node) if needs.extended is not None else needs.variant
        if isinstance(variant, Status):
            return variant
        status = reserve(self.context, needs, variant, node.name)
        return self._charging.charge(state, needs) if status.ok else status

    async def unreserve(self, state: CycleState, pod: Pod, node: str) -> None:
        needs = _needs(state)
        await unreserve(self.context, needs, pod)
        await self._charging.clear(needs, pod)
        if needs.extended is not None:
            await needs.extended.undo(needs)

    def waits(self, state: CycleState, pod: Pod, node: str) -> bool:
        return waits(self.context, _needs(state))

    async def pre_bind(self, state: CycleState, pod: Pod, node: str) -> Status:
        needs = _needs(state)
        if not needs:
            return SUCCESS
        try:
            for need in needs.needs:
                if need.special and needs.extended is not None:
                    await needs.extended.bind(need)
                else:
                    await bind_claim(self.context, need)
            if needs.extended is not None:
                await needs.extended.settle(needs)
            await self._charging.write(state, needs)
            if waits(self.context, needs):
                message = f"waiting for binding conditions for device on node {node}"
                self.context.handle.record(pod, "Normal", "BindingConditionsPending", message)
                await wait_ready(self.context, needs, pod)
        except DrakitError as error:
            return Status.failed(error)
        return SUCCESS


def _needs(state: CycleState) -> PodNeeds:
    needs: PodNeeds = state.get(NAME) or _NO_NEEDS
    return needs
