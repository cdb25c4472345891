"""Score: nodes where the pod gets what it would rather have.

In:  the pod's needs, nodes that fit.
Out: per node a sum over all prioritized lists: more the earlier the alternative that was chosen; then 0 to 100.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from drakit.allocator import Answer
from drakit.api.claims import ResourceClaim
from drakit.api.requests import results_of, sub_request_name
from drakit.scheduler.dynamicresources.needs import PodNeeds, Variant
from drakit.scheduler.framework import NodeInfo

MAX_ALTERNATIVES = 8
_MOST = 100


def has_choices(state: PodNeeds) -> bool:
    """Whether nodes can differ: some claim that is to be allocated has alternatives."""
    return any(request.first_available for claim in state.variant.claims for request in claim.spec.devices.requests)


def rank_nodes(state: PodNeeds, variant: Variant, nodes: Sequence[NodeInfo]) -> list[int]:
    """What each node is worth, not yet made comparable."""
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


def _answer_worth(variant: Variant, answer: Answer, worth: Sequence[Mapping[str, int]]) -> int:
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
