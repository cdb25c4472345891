"""Which of the nodes that fit is best.

In:  feasible nodes.
Out: one of them: the highest sum of weighted marks; among equals, chance decides.
"""

from __future__ import annotations

from itertools import compress, islice
from operator import add
from random import Random

from drakit.api.objects.pods import Pod
from drakit.scheduler.framework import CycleState, NodeInfo
from drakit.scheduler.scheduling.profiles import Profile


def choose(profile: Profile, state: CycleState, pod: Pod, nodes: list[NodeInfo], random: Random) -> NodeInfo:
    if len(nodes) == 1:
        return nodes[0]
    marks = totals(profile, state, pod, nodes)
    best = max(marks)
    count = marks.count(best)
    if count == 1:
        return nodes[marks.index(best)]
    equals = compress(nodes, map(best.__eq__, marks))
    return next(islice(equals, random.randrange(count), None))


def totals(profile: Profile, state: CycleState, pod: Pod, nodes: list[NodeInfo]) -> list[int]:
    """The sum of weighted marks of each node."""
    sums: list[int] | None = None
    for plugin, score, weight in profile.scores:
        if plugin in state.skip_score:
            continue
        marks = score(state, pod, nodes)
        if len(marks) != len(nodes):
            raise ValueError(f'plugin "{plugin}" failed with: {len(marks)} marks for {len(nodes)} nodes')
        weighted = marks if weight == 1 else list(map(weight.__mul__, marks))
        sums = list(weighted if sums is None else map(add, sums, weighted))
    return sums if sums is not None else [1] * len(nodes)
