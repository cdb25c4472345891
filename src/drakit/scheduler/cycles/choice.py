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
    totals = total_scores(profile, state, pod, nodes)
    best = max(totals)
    equals = [node for node, total in zip(nodes, totals, strict=True) if total == best]
    return equals[random.randrange(len(equals))] if len(equals) > 1 else equals[0]


def total_scores(profile: Profile, state: CycleState, pod: Pod, nodes: list[NodeInfo]) -> list[int]:
    """The sum of weighted scores of each node."""
    asked = [each for each in profile.score if each[0].name not in state.skip_score]
    if not asked:
        return [1] * len(nodes)
    same, differing = 0, list[tuple[int, Sequence[int]]]()
    for plugin, weight in asked:
        scores = plugin.score(state, pod, nodes)
        if isinstance(scores, int):
            same += weight * scores
        elif len(scores) != len(nodes):
            raise ValueError(f'plugin "{plugin.name}" failed with: {len(scores)} scores for {len(nodes)} nodes')
        else:
            differing.append((weight, scores))
    return _sums(same, differing) if differing else [same] * len(nodes)


def _sums(same: int, differing: list[tuple[int, Sequence[int]]]) -> list[int]:
    (weight, scores), *others = differing
    totals = [same + weight * score for score in scores]
    for weight, scores in others:
        totals = [total + weight * score for total, score in zip(totals, scores, strict=True)]
    return totals
