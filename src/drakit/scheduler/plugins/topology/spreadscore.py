"""Scores of topology spread: nodes in domains with few pods of the kind come first.

In:  constraints, the nodes that fit, all nodes.
Out: a score from 0 to 100 per node that fits. One more pod weighs the more, the more domains there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from drakit.api.objects.cluster import Node
from drakit.scheduler.framework import NodeInfo
from drakit.scheduler.plugins.normalization import MOST
from drakit.scheduler.plugins.topology.counts import ByNode
from drakit.scheduler.plugins.topology.terms import Constraints, SpreadConstraint

HOSTNAME = "kubernetes.io/hostname"


class SpreadScore:
    """`counts` says whether a node has a part in a constraint. Lenient: a node may lack a label."""

    def __init__(
        self,
        constraints: Constraints,
        pods: Sequence[ByNode[int]],
        counts: Callable[[SpreadConstraint, Node], bool],
        *,
        lenient: bool,
    ) -> None:
        self._constraints = constraints
        self._pods = pods
        self._counts = counts
        self._lenient = lenient

    def of(self, nodes: Sequence[NodeInfo], everything: Sequence[NodeInfo]) -> list[int]:
        judged = [node for node in nodes if self._is_judged(node)]
        rated = dict.fromkeys((node.name for node in judged), 0.0)
        for constraint, pods in zip(self._constraints, self._pods, strict=True):
            key = constraint.topology_key
            domains = None if key == HOSTNAME else self._domains(constraint, pods, judged, everything)
            weight = math.log(2 + (len(judged) if domains is None else len(domains)))
            for node in judged:
                if (value := node.node.metadata.labels.get(key)) is not None:
                    count = pods.of(node) if domains is None else domains[value]
                    rated[node.name] += count * weight + (constraint.max_skew - 1)
        return _fewest_first([math.floor(rated[each.name] + 0.5) if each.name in rated else None for each in nodes])

    def _is_judged(self, node: NodeInfo) -> bool:
        labels = node.node.metadata.labels
        return self._lenient or all(each.topology_key in labels for each in self._constraints)

    def _domains(
        self,
        constraint: SpreadConstraint,
        pods: ByNode[int],
        judged: Sequence[NodeInfo],
        everything: Sequence[NodeInfo],
    ) -> dict[str, int]:
        """The pods in each domain of a node that fits, wherever they run."""
        key = constraint.topology_key
        found = dict.fromkeys((node.node.metadata.labels.get(key, "") for node in judged), 0)
        for node in everything:
            value = node.node.metadata.labels.get(key, "")
            if value in found and self._is_judged(node) and self._counts(constraint, node.node):
                found[value] += pods.of(node)
        return found


def _fewest_first(scores: Sequence[int | None]) -> list[int]:
    """The fewest get most. A node that lacks a label gets nothing."""
    known = [score for score in scores if score is not None]
    least, most = min(known, default=0), max(known, default=0)
    if most == 0:
        return [0 if score is None else MOST for score in scores]
    return [0 if score is None else MOST * (most + least - score) // most for score in scores]
