"""Filter: on which nodes can the pod use the claims that are allocated, and have the others allocated?

In:  the pod's needs, many nodes.
Out: the nodes that do not fit, each with why. A failure that no node can mend ends the attempt.
"""

from __future__ import annotations

from collections.abc import Sequence

from drakit.allocator import AllocationError, Allocator, NodeError, OutOfTime, SearchAnswer, Unsatisfiable
from drakit.api.objects.claims import AllocationResult
from drakit.scheduler.dynamicresources.nodeallocatable.charges import refuse_overcharged
from drakit.scheduler.dynamicresources.points.preparation import NOT_AVAILABLE
from drakit.scheduler.dynamicresources.state.context import PluginContext
from drakit.scheduler.dynamicresources.state.needs import ClaimNeed, PodNeeds, UsableNodes, Variant
from drakit.scheduler.framework import NodeInfo, PluginStatus, Unfinished

TIMED_OUT = PluginStatus.unresolvable("timed out trying to allocate devices")
EXPENSIVE = (
    "allocating devices for the pod's claims takes long: it goes on in the background, and the pod is tried again"
)
Refused = dict[str, PluginStatus]


def refuse_nodes(context: PluginContext, state: PodNeeds, nodes: Sequence[NodeInfo]) -> Refused:
    """Nodes are looked at in groups: one for each variant of the claims to allocate."""
    refused: Refused = {}
    groups = state.extended.groups(state, nodes, refused) if state.extended else [(state.variant, nodes)]
    more = bool(state.broken) or state.charge is not None or any(_allocation_of(each) for each in state.needs)
    for variant, alike in groups:
        goes_on = _refuse_unallocatable(context, variant, alike, refused)
        if goes_on and more:
            fitting = [node for node in alike if node.name not in refused]
            _refuse_unavailable(state, fitting, refused)
            refuse_overcharged(state, variant, fitting, refused)
    return refused


def _refuse_unallocatable(
    context: PluginContext, variant: Variant, nodes: Sequence[NodeInfo], refused: Refused
) -> bool:
    """Leave out nodes on which something cannot be allocated that has to be. False: the attempt is over."""
    allocator = variant.allocator
    if allocator is None:
        return True
    suitable = context.suitable.of(allocator)
    nodes_left = suitable.rest(nodes)
    beyond: set[int] = set()
    for position, answer, plain in allocator.refused([node.name for node in nodes_left]):
        name = nodes_left[position].name
        beyond.add(position)
        if plain:
            refused[name] = context.cannot_allocate
            continue
        why = refused[name] = _why(context, variant, allocator, name, answer)
        # An error ends the attempt: no other node needs a look.
        if not why.is_rejected:
            return False
    if beyond and len(beyond) == len(nodes):
        context.metrics.searched(answer.result.value, answer.steps)
    suitable.add(node for position, node in enumerate(nodes_left) if position not in beyond)
    return True


def _allocation_of(need: ClaimNeed) -> AllocationResult | None:
    return need.claim.status.allocation or need.allocation


def _why(
    context: PluginContext, variant: Variant, allocator: Allocator, node: str, answer: SearchAnswer
) -> PluginStatus:
    if answer.is_out_of_time:
        return _out_of_time(context, variant, allocator)
    match allocator.allocate(node, new_uid=context.handle.new_uid):
        case Unsatisfiable():
            return context.cannot_allocate
        case NodeError(words=words):
            return PluginStatus.unresolvable(words)
        case AllocationError(words=words):
            return PluginStatus.failed(words)
        case OutOfTime():
            return TIMED_OUT
        case _:
            raise AssertionError(f"node {node}: an answer that fails, and an allocation that does not")


def _out_of_time(context: PluginContext, variant: Variant, allocator: Allocator) -> PluginStatus:
    """The node had its time. Or the attempt had, and a thread goes on: the pod is tried again after its backoff."""
    interrupted = variant.budget is not None and variant.budget.interrupted
    if not interrupted or context.background.is_exhausted(allocator.cost_key):
        return TIMED_OUT
    nodes = [node.name for node in context.handle.nodes.all()]
    context.background.begin(context.inventory, variant.claims, nodes)
    return PluginStatus.failed(Unfinished(EXPENSIVE, context.background.finished))


def _refuse_unavailable(state: PodNeeds, nodes: Sequence[NodeInfo], refused: Refused) -> None:
    """Leave out nodes that a claim's allocation does not reach. Such a claim stands in the way of a node that fits."""
    if state.broken:
        state.unavailable |= state.broken.keys() if nodes else set()
        refused.update((node.name, next(iter(state.broken.values()))) for node in nodes)
    for position, need in enumerate(state.needs):
        allocation = _allocation_of(need)
        if allocation is None or allocation.node_selector is None:
            continue
        reach = UsableNodes(allocation.node_selector)
        beyond = [node.name for node in nodes if not reach.includes(node)]
        if beyond:
            refused.update((name, NOT_AVAILABLE) for name in beyond)
            if need.is_allocated:
                state.unavailable.add(position)
