"""Score: nodes where the pod gets what it would rather have, and where few or many devices stay free.

In:  the pod's needs, nodes that fit.
Out: per node a sum over all prioritized lists: more the earlier the alternative that was chosen; then 0 to 100. With a
     device strategy also a score for the devices that stay free; a pod with alternatives gets the mean of both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from drakit.allocator import SearchAnswer
from drakit.api.objects.claims import ResourceClaim
from drakit.api.requests import results_of, sub_request_name
from drakit.scheduler.config.args import BINPACK
from drakit.scheduler.dynamicresources.state.needs import PodNeeds, Variant
from drakit.scheduler.framework import NodeInfo

MAX_ALTERNATIVES = 8
_MOST = 100


def score_nodes(state: PodNeeds, nodes: Sequence[NodeInfo], strategy: str) -> list[int]:
    """A score from 0 to 100 for each node; without a `strategy`, devices that stay free do not count."""
    free = score_left(devices_left(state, nodes), strategy) if strategy else []
    if free and not has_choices(state):
        return free
    if state.extended is not None:
        ranks = normalise(state.extended.rank_nodes(state, nodes))
    else:
        ranks = normalise(rank_nodes(state, state.variant, nodes))
    return [(rank + score) // 2 for rank, score in zip(ranks, free, strict=True)] if free else ranks


def can_differ(state: PodNeeds, strategy: str) -> bool:
    """Whether nodes can get different scores."""
    return has_choices(state) or bool(strategy and (state.variant.allocator is not None or state.extended is not None))


def has_choices(state: PodNeeds) -> bool:
    """Whether nodes can differ: some claim that is to be allocated has alternatives."""
    return any(request.first_available for claim in state.variant.claims for request in claim.spec.devices.requests)


def rank_nodes(state: PodNeeds, variant: Variant, nodes: Sequence[NodeInfo]) -> list[int]:
    """The raw score of each node, before normalization."""
    fixed = sum(
        _worth(need.claim, {each.request for each in results_of(need.claim)})
        for need in state.needs
        if need.is_allocated
    )
    if variant.allocator is None:
        return [fixed] * len(nodes)
    worth = [_ranks(claim) for claim in variant.claims]
    known: dict[tuple[int, ...], int] = {}
    ranks: list[int] = []
    for answer in variant.allocator.answers([node.name for node in nodes]):
        if answer.chosen not in known:
            known[answer.chosen] = fixed + _answer_worth(variant, answer, worth)
        ranks.append(known[answer.chosen])
    return ranks


def normalise(ranks: Sequence[int]) -> list[int]:
    """In proportion to the best, which gets 100."""
    best = max(ranks, default=0)
    return [rank * _MOST // best for rank in ranks] if best > 0 else [0] * len(ranks)


def devices_left(state: PodNeeds, nodes: Sequence[NodeInfo]) -> list[int]:
    """How many devices that the pod could use stay free on each node, should it go there."""
    if state.extended is None:
        return _left(state.variant, nodes)
    left: dict[str, int] = {}
    for variant, alike in state.extended.groups(state, nodes, {}):
        left.update(zip((node.name for node in alike), _left(variant, alike), strict=True))
    return [left.get(node.name, 0) for node in nodes]


def score_left(left: Sequence[int], strategy: str) -> list[int]:
    """In proportion to the node where most devices stay free: that gets 100 when pods are spread, 0 when packed."""
    most = max(left, default=0) or 1
    if strategy == BINPACK:
        scores = {each: (most - each) * _MOST // most for each in set(left)}
    else:
        scores = {each: each * _MOST // most for each in set(left)}
    return [scores[each] for each in left]


def _left(variant: Variant, nodes: Sequence[NodeInfo]) -> list[int]:
    if variant.allocator is None:
        return [0] * len(nodes)
    return variant.allocator.left([node.name for node in nodes])


def _answer_worth(variant: Variant, answer: SearchAnswer, worth: Sequence[Mapping[str, int]]) -> int:
    chosen = variant.allocator.ranks(answer) if variant.allocator is not None else ()
    return sum(worth[claim].get(name, 0) for claim, name in chosen)


def _worth(claim: ResourceClaim, chosen: set[str]) -> int:
    return sum(rank for name, rank in _ranks(claim).items() if name in chosen)


def _ranks(claim: ResourceClaim) -> dict[str, int]:
    return {
        sub_request_name(request.name, each.name): MAX_ALTERNATIVES - place
        for request in claim.spec.devices.requests
        for place, each in enumerate(request.first_available)
    }
