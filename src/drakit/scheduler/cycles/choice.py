"""Which of the nodes that fit is best.

In:  feasible nodes.
Out: one of them: the highest sum of weighted scores; among equals, chance decides.
"""

from __future__ import annotations

from itertools import compress, islice
from operator import add
from random import Random

from drakit.api.objects.pods import Pod
from drakit.scheduler.framework import CycleState, NodeInfo, Profile


def choose(profile: Profile, state: CycleState, pod: Pod, nodes: list[NodeInfo], random: Random) -> NodeInfo:
    if len(nodes) == 1:
        return nodes[0]
    scores = totals(profile, state, pod, nodes)
    best = max(scores)
    count = scores.count(best)
    if count == 1:
        return nodes[scores.index(best)]
    equals = compress(nodes, map(best.__eq__, scores))
    return next(islice(equals, random.randrange(count), None))


def totals(profile: Profile, state: CycleState, pod: Pod, nodes: list[NodeInfo]) -> list[int]:
    """The sum of weighted scores of each node."""
    sums: list[int] | None = None
    for plugin, weight in profile.score:
        if plugin.name in state.skip_score:
            continue
        scores = plugin.score(state, pod, nodes)
        if len(scores) != len(nodes):
            raise ValueError(f'plugin "{plugin.name}" failed with: {len(scores)} scores for {len(nodes)} nodes')
        weighted = scores if weight == 1 else list(map(weight.__mul__, scores))
        sums = list(weighted if sums is None else map(add, sums, weighted))
    return sums if sums is not None else [1] * len(nodes)
