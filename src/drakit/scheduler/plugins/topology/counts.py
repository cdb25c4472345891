"""Numbers by topology: what the pods on nodes come to, per label of the nodes.

In:  nodes, and a function that says what the pods on one node come to.
Out: sums per (label, value). A NodeInfo never changes, so what was worked out for one is kept: an attempt costs a
     look-up per node, and the work for those that changed since the last attempt of a pod that asks the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

from drakit.scheduler.framework import NodeInfo

Pair = tuple[str, str]
"""A label of nodes and its value."""
Sums = dict[Pair, int]
NONE: Mapping[Pair, int] = {}
_MOST_NODES = 20_000

A = TypeVar("A")


class ByNode(Generic[A]):
    """What was found out of each node. Invariant: of one name the latest NodeInfo is kept."""

    def __init__(self, look: Callable[[NodeInfo], A]) -> None:
        self._look = look
        self._known: dict[str, tuple[NodeInfo, A]] = {}

    def of(self, node: NodeInfo) -> A:
        found = self._known.get(node.name)
        if found is not None and found[0] is node:
            return found[1]
        if len(self._known) >= _MOST_NODES:
            self._known.clear()
        made = self._look(node)
        self._known[node.name] = (node, made)
        return made


def add(total: Sums, more: Mapping[Pair, int], sign: int = 1) -> None:
    """Add in place; what comes to nothing is not kept."""
    for pair, amount in more.items():
        left = total.get(pair, 0) + sign * amount
        if left:
            total[pair] = left
        else:
            total.pop(pair, None)


def tally(node: NodeInfo, found: Iterable[tuple[str, int]]) -> Mapping[Pair, int]:
    """Amounts by topology key as sums by the labels of a node; a node without the label has no part in them."""
    labels, sums = node.node.metadata.labels, Sums()
    for key, amount in found:
        if key in labels:
            pair = (key, labels[key])
            sums[pair] = sums.get(pair, 0) + amount
    return sums or NONE
