"""Answers are kept as long as they are true, and no longer."""

from __future__ import annotations

import pytest

from drakit.scheduler.framework import NodeInfo, PluginStatus
from drakit.scheduler.plugins import noderesults
from drakit.scheduler.plugins.noderesults import FilterResults, RecentResults, Scores
from tests.scheduler.plugins.making import make_node, make_pod, on

FULL = PluginStatus.unschedulable("full")


class Asked:
    """A check_node that notes whom it was asked about: a node with pods is full."""

    def __init__(self) -> None:
        self.about: list[str] = []

    def check_node(self, node: NodeInfo) -> PluginStatus | None:
        self.about.append(node.name)
        return FULL if node.pods else None

    def score(self, node: NodeInfo) -> int:
        self.about.append(node.name)
        return len(node.pods)


def test_only_nodes_that_changed_are_looked_at_again() -> None:
    asked = Asked()
    results, nodes = FilterResults(asked.check_node), [on(make_node(name)) for name in "abc"]
    assert results.rejections(nodes) == {}
    nodes[1] = nodes[1].with_pod(make_pod())
    assert results.rejections(nodes) == {"b": FULL}
    assert results.rejections(nodes[::-1]) == {"b": FULL}
    assert asked.about == ["a", "b", "c", "b"]


def test_marks_are_made_once_per_node_and_follow_its_changes() -> None:
    asked = Asked()
    scores, nodes = Scores(asked.score), [on(make_node(name)) for name in "ab"]
    assert scores.of(nodes) == [0, 0]
    nodes[0] = nodes[0].with_pod(make_pod())
    assert scores.of(nodes) == scores.of(nodes) == [1, 0]
    assert asked.about == ["a", "b", "a"]


def test_what_a_node_was_before_is_not_kept() -> None:
    asked = Asked()
    results, scores, node = FilterResults(asked.check_node), Scores(asked.score), on(make_node("a"))
    for number in range(50):
        node = node.with_pod(make_pod(f"p{number}")) if number % 2 else on(make_node("a"))
        results.rejections([node])
        scores.of([node])
    assert len(results._fit) + len(results._refused) == len(scores) == 1


def test_nodes_that_are_gone_are_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noderesults, "_MOST_NODES", 10)
    asked = Asked()
    results, scores = FilterResults(asked.check_node), Scores(asked.score)
    for number in range(35):
        node = on(make_node(f"n{number}"))
        assert results.rejections([node]) == {}
        assert scores.of([node]) == [0]
    assert len(results._fit) <= 10
    assert len(scores) <= 10


def test_the_questions_asked_last_are_remembered() -> None:
    questions: RecentResults[list[int]] = RecentResults(most=2)
    first = questions.get("first", list)
    questions.get("second", list)
    assert questions.get("first", list) is first
    second = questions.get("second", list)
    questions.get("third", list)
    assert questions.get("second", list) is second
    assert questions.get("first", list) is not first
