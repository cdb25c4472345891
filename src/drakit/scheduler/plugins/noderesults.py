"""Ask one question of many nodes, and only of those that have changed since it was last asked.

In:  a question (a pod's requests, its tolerations, …) as a function of one node, and nodes.
Out: the answers. NodeInfos are immutable, so an answer about one stays true: pods of one template ask the same of the
     same nodes but for the few that took a pod in between. A pass over known nodes runs at the speed of a set.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

from drakit.scheduler.framework import NodeInfo, PluginStatus, Rejections

A = TypeVar("A")
NodeFilter = Callable[[NodeInfo], PluginStatus | None]
_MOST_NODES = 20_000
_MOST_QUESTIONS = 16
NONE_REFUSED: Rejections = {}


class FilterResults:
    """Which nodes pass. Invariant: of one name the latest NodeInfo is kept, in `_fit` or in `_refused`."""

    def __init__(self, check_node: NodeFilter) -> None:
        self._check = check_node
        self._fit: set[NodeInfo] = set()
        self._refused: dict[NodeInfo, PluginStatus] = {}
        self._latest: dict[str, NodeInfo] = {}

    def rejections(self, nodes: Sequence[NodeInfo]) -> Rejections:
        doubtful = [node for node in nodes if node not in self._fit]
        if not doubtful:
            return NONE_REFUSED
        known = self._refused.get
        found = {node.name: known(node) or self._look(node) for node in doubtful}
        return {name: status for name, status in found.items() if status is not None}

    def _look(self, node: NodeInfo) -> PluginStatus | None:
        if len(self._latest) >= _MOST_NODES:
            self._latest.clear()
            self._fit.clear()
            self._refused.clear()
        before = self._latest.get(node.name)
        # Of one node name only the latest state is kept, or every pod that is placed would leave an entry behind.
        if before is not None:
            self._fit.discard(before)
            self._refused.pop(before, None)
        self._latest[node.name] = node
        status = self._check(node)
        if status is None:
            self._fit.add(node)
        else:
            self._refused[node] = status
        return status


class Scores(dict[NodeInfo, int]):
    """A number for each node. Invariant: of one name the latest NodeInfo is kept."""

    def __init__(self, score: Callable[[NodeInfo], int]) -> None:
        super().__init__()
        self._score_node = score
        self._latest: dict[str, NodeInfo] = {}

    def of(self, nodes: Sequence[NodeInfo]) -> list[int]:
        # Measured for 100 nodes: 2.9 µs this way, 4.8 µs with a loop.
        return list(map(self.__getitem__, nodes))

    def __missing__(self, node: NodeInfo) -> int:
        if len(self._latest) >= _MOST_NODES:
            self._latest.clear()
            self.clear()
        before = self._latest.get(node.name)
        if before is not None:
            self.pop(before, None)
        self._latest[node.name] = node
        self[node] = score = self._score_node(node)
        return score


class RecentResults(Generic[A]):
    """The answers to the questions that were asked last."""

    def __init__(self, *, most: int = _MOST_QUESTIONS) -> None:
        self._most = most
        self._answers: OrderedDict[Hashable, A] = OrderedDict()

    def get(self, question: Hashable, begin: Callable[[], A]) -> A:
        """What is known for a question; `begin` makes it for a new one. Least recently asked questions are dropped."""
        answers = self._answers.get(question)
        if answers is None:
            answers = self._answers[question] = begin()
            if len(self._answers) > self._most:
                self._answers.popitem(last=False)
        else:
            self._answers.move_to_end(question)
        return answers
