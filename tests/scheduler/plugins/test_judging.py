"""Answers are kept as long as they are true, and no longer."""

from __future__ import annotations

import pytest

from drakit.scheduler.framework import NodeInfo, Status
from drakit.scheduler.plugins import judging
from drakit.scheduler.plugins.judging import Marks, Questions, Verdicts
from tests.scheduler.plugins.making import make_node, make_pod, on

FULL = Status.unschedulable("full")


class Asked:
    """A judge that notes whom it was asked about: a node with pods is full."""

    def __init__(self) -> None:
        self.about: list[str] = []

    def judge(self, node: NodeInfo) -> Status | None:
        self.about.append(node.name)
        return FULL if node.pods else None

    def mark(self, node: NodeInfo) -> int:
        self.about.append(node.name)
        return len(node.pods)


def test_only_nodes_that_changed_are_looked_at_again() -> None:
    asked = Asked()
    verdicts, nodes = Verdicts(asked.judge), [on(make_node(name)) for name in "abc"]
    assert verdicts.rejections(nodes) == {}
    nodes[1] = nodes[1].with_pod(make_pod())
    assert verdicts.rejections(nodes) == {"b": FULL}
    assert verdicts.rejections(nodes[::-1]) == {"b": FULL}
    assert asked.about == ["a", "b", "c", "b"]


def test_marks_are_made_once_per_node_and_follow_its_changes() -> None:
    asked = Asked()
    marks, nodes = Marks(asked.mark), [on(make_node(name)) for name in "ab"]
    assert marks.of(nodes) == [0, 0]
    nodes[0] = nodes[0].with_pod(make_pod())
    assert marks.of(nodes) == marks.of(nodes) == [1, 0]
    assert asked.about == ["a", "b", "a"]


def test_what_a_node_was_before_is_not_kept() -> None:
    asked = Asked()
    verdicts, marks, node = Verdicts(asked.judge), Marks(asked.mark), on(make_node("a"))
    for number in range(50):
        node = node.with_pod(make_pod(f"p{number}")) if number % 2 else on(make_node("a"))
        verdicts.rejections([node])
        marks.of([node])
    assert len(verdicts._fit) + len(verdicts._refused) == len(marks) == 1


def test_nodes_that_are_gone_are_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "_MOST_NODES", 10)
    asked = Asked()
    verdicts, marks = Verdicts(asked.judge), Marks(asked.mark)
    for number in range(35):
        node = on(make_node(f"n{number}"))
        assert verdicts.rejections([node]) == {}
        assert marks.of([node]) == [0]
    assert len(verdicts._fit) <= 10
    assert len(marks) <= 10


def test_the_questions_asked_last_are_remembered() -> None:
    questions: Questions[list[int]] = Questions(most=2)
    first = questions.get("first", list)
    questions.get("second", list)
    assert questions.get("first", list) is first
    second = questions.get("second", list)
    questions.get("third", list)
    assert questions.get("second", list) is second
    assert questions.get("first", list) is not first
