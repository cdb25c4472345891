"""NodeResourcesBalancedAllocation: prefer nodes whose resources the pod would make more evenly used.

The balance of a node is 100 minus the standard deviation of its used fractions, in percent. The score compares the
balance with and without the pod.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from drakit.api.objects.pods import Pod
from drakit.scheduler.config.args import NodeResourcesBalancedAllocationArgs
from drakit.scheduler.config.names import BALANCED_ALLOCATION
from drakit.scheduler.framework import CycleState, NodeInfo
from drakit.scheduler.framework.footprints import footprint_of
from drakit.scheduler.plugins.amounts import Totals, depends_on_devices, no_devices, there_and_taken
from drakit.scheduler.plugins.noderesults import RecentResults, Scores
from drakit.scheduler.plugins.normalization import MOST
from drakit.scheduler.plugins.resources import is_scalar

WantedAmounts = tuple[tuple[str, int], ...]


class BalancedAllocation:
    name = BALANCED_ALLOCATION

    def __init__(self, args: NodeResourcesBalancedAllocationArgs | None = None, *, totals: Totals = no_devices) -> None:
        self._totals = totals
        self._resources = tuple(each.name for each in (args or NodeResourcesBalancedAllocationArgs()).resources)
        self._scores: RecentResults[Scores] = RecentResults()

    def score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Sequence[int] | int:
        """0 for every node if the pod requests none of the resources: it cannot change a balance."""
        footprint = footprint_of(pod)
        if not any(footprint.asked.get(name) for name in self._resources):
            return 0
        wanted = tuple(
            (name, footprint.asked.get(name, 0))
            for name in self._resources
            if footprint.asked.get(name) or not is_scalar(name)
        )
        if depends_on_devices(self._resources, footprint.asked):
            return self._begin(wanted).of(nodes)
        # By what it looks at: pods that ask for different devices share the scores of nodes.
        return self._scores.get(wanted, lambda: self._begin(wanted)).of(nodes)

    def _begin(self, wanted: WantedAmounts) -> Scores:
        return Scores(lambda node: _score_node(node, wanted, self._totals))


def _score_node(node: NodeInfo, wanted: WantedAmounts, totals: Totals) -> int:
    found = [(asked, *there_and_taken(node, name, node.requested, totals)) for name, asked in wanted]
    there = [(taken, asked, capacity) for asked, capacity, taken in found if capacity]
    after = _balance([min((taken + asked) / capacity, 1.0) for taken, asked, capacity in there])
    before = _balance([min(taken / capacity, 1.0) for taken, _, capacity in there])
    return MOST // 2 + (MOST // 2 + after - before) // 2


def _balance(shares: Sequence[float]) -> int:
    return int((1 - _spread(shares)) * MOST)


def _spread(shares: Sequence[float]) -> float:
    """The standard deviation."""
    if len(shares) < 2:
        return 0.0
    if len(shares) == 2:
        return abs((shares[0] - shares[1]) / 2)
    mean = sum(shares) / len(shares)
    return math.sqrt(sum((share - mean) * (share - mean) for share in shares) / len(shares))
