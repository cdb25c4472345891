"""Which of the nodes that fit is best.

In:  feasible nodes.
Out: one of them: the highest sum of weighted scores; among equals, chance decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from drakit.api.objects.pods import Pod
from drakit.scheduler.framework import CycleState, NodeInfo, Profile


def choose(profile: Profile, state: CycleState, pod: Pod, nodes: list[NodeInfo], random: Random) -> NodeInfo:
    if len(nodes) == 1:
        return nodes[0]
    totals = _totals(profile, state, pod, nodes)
    if totals is None:
        return nodes[random.randrange(len(nodes))]
    best = max(totals)
    equals = [node for node, total in zip(nodes, totals, strict=True) if total == best]
    return equals[random.randrange(len(equals))] if len(equals) > 1 else equals[0]


def _totals(profile: Profile, state: CycleState, pod: Pod, nodes: list[NodeInfo]) -> Sequence[int] | None:
    """The sum of weighted scores of each node, without those that are the same for all; None if all are."""
    totals: Sequence[int] | None = None
    for plugin, weight in profile.score:
        if plugin.name in state.skip_score:
            continue
        scores = plugin.score(state, pod, nodes)
        if isinstance(scores, int):
            continue
        if len(scores) != len(nodes):
            raise ValueError(f'plugin "{plugin.name}" failed with: {len(scores)} scores for {len(nodes)} nodes')
        if totals is not None:
            totals = [total + weight * score for total, score in zip(totals, scores, strict=True)]
        else:
            totals = scores if weight == 1 else [weight * score for score in scores]
    return totals
