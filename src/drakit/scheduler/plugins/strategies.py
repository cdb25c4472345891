"""How good a fit a node is: by how much of it would be taken, the pod included.

In:  a strategy with its resources and weights, what the pod asks for.
Out: a function that scores a node from 0 to 100.

A container without a cpu or memory request counts with a default; other resources count only if the pod asks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from drakit.scheduler.config.args import (
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY,
    RequestedToCapacityRatio,
    ScoringStrategy,
    ShapePoint,
)
from drakit.scheduler.framework import NodeInfo
from drakit.scheduler.framework.footprints import CPU, MEMORY, Amounts
from drakit.scheduler.plugins.amounts import Totals, no_devices, there_and_taken
from drakit.scheduler.plugins.normalization import MOST
from drakit.scheduler.plugins.resources import is_scalar

NodeScorer = Callable[[NodeInfo], int]
Weighed = tuple[tuple[str, int, int], ...]
"""Resources, each with what a pod asks of it and its weight."""
Curve = Callable[[int, int], int]
"""The score of one resource from (taken, capacity)."""

_STEP = MOST // 10  # shapes score from 0 to 10


def weighed(strategy: ScoringStrategy, asked: Amounts) -> Weighed:
    """What a strategy looks at: pods for which it comes out equal have the same score on every node."""
    return tuple(
        (each.name, asked.get(each.name, 0), each.weight)
        for each in strategy.resources
        if asked.get(each.name) or not is_scalar(each.name)
    )


def scorer(strategy: ScoringStrategy, wanted: Weighed, totals: Totals = no_devices) -> NodeScorer:
    """`totals` counts the devices behind resources that a node does not have itself."""
    if strategy.type == REQUESTED_TO_CAPACITY:
        shape = (strategy.requested_to_capacity_ratio or RequestedToCapacityRatio()).shape
        return lambda node: _rounded_average(
            _scores(node, wanted, totals, lambda taken, of: _on_shape(shape, taken, of))
        )
    curve = _most if strategy.type == MOST_ALLOCATED else _least
    return lambda node: _average(_scores(node, wanted, totals, curve))


def _scores(node: NodeInfo, wanted: Weighed, totals: Totals, curve: Curve) -> list[tuple[int, int]]:
    """A score and its weight for each resource that the node has."""
    found = []
    for name, asked, weight in wanted:
        ledger = node.nonzero if name in (CPU, MEMORY) else node.requested
        capacity, taken = there_and_taken(node, name, ledger, totals)
        if capacity:
            found.append((curve(taken + asked, capacity), weight))
    return found


def _average(scores: Sequence[tuple[int, int]]) -> int:
    total = sum(weight for _, weight in scores)
    return sum(score * weight for score, weight in scores) // total if total else 0


def _rounded_average(scores: Sequence[tuple[int, int]]) -> int:
    """Resources with a score of 0 are left out of the average."""
    counted = [(score, weight) for score, weight in scores if score > 0]
    total = sum(weight for _, weight in counted)
    return (2 * sum(score * weight for score, weight in counted) + total) // (2 * total) if total else 0


def _least(taken: int, capacity: int) -> int:
    return (capacity - taken) * MOST // capacity if taken <= capacity else 0


def _most(taken: int, capacity: int) -> int:
    return min(taken, capacity) * MOST // capacity


def _on_shape(shape: Sequence[ShapePoint], taken: int, capacity: int) -> int:
    """Straight lines between the points, level before the first and after the last."""
    use = min(taken, capacity) * 100 // capacity
    left: ShapePoint | None = None
    for right in shape:
        if use <= right.utilization:
            return _between(left, right, use) if left else right.score * _STEP
        left = right
    return left.score * _STEP if left else 0


def _between(left: ShapePoint, right: ShapePoint, use: int) -> int:
    rise, run = (right.score - left.score) * _STEP, right.utilization - left.utilization
    part = abs(rise) * (use - left.utilization) // run
    return left.score * _STEP + (part if rise > 0 else -part)
