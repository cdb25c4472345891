"""Which changes of a node are worth telling."""

from __future__ import annotations

from typing import Any

import pytest

from drakit.api.objects.cluster import Node
from drakit.api.objects.plain import from_plain
from drakit.scheduler.framework import Action
from drakit.scheduler.framework.changes import node_change


def node(**parts: Any) -> Node:
    return from_plain(Node, {"metadata": {"name": "a"}, **parts})


def ready(status: str, beat: str) -> dict[str, Any]:
    return {"conditions": [{"type": "Ready", "status": status, "lastHeartbeatTime": beat}]}


TAINT = {"key": "k", "effect": "NoSchedule"}
BEAT, NEXT = "2026-01-01T00:00:00Z", "2026-01-01T00:00:10Z"


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        (node(), node(), Action(0)),
        (node(), node(spec={"taints": [TAINT]}), Action.UPDATE_NODE_TAINTS),
        (node(spec={"unschedulable": True}), node(), Action.UPDATE_NODE_TAINTS),
        (node(), node(spec={"unschedulable": True}), Action(0)),
        (node(), node(status={"allocatable": {"cpu": "1"}}), Action.UPDATE_NODE_ALLOCATABLE),
        (node(), node(status={"capacity": {"cpu": "1"}}), Action(0)),
        (node(), node(metadata={"name": "a", "labels": {"x": "y"}}), Action.UPDATE_NODE_LABELS),
        (node(), node(metadata={"name": "a", "annotations": {"x": "y"}}), Action.UPDATE_NODE_ANNOTATIONS),
        (node(status=ready("True", BEAT)), node(status=ready("True", NEXT)), Action(0)),
        (node(status=ready("True", BEAT)), node(status=ready("False", BEAT)), Action.UPDATE_NODE_CONDITION),
        (
            node(),
            node(metadata={"name": "a", "labels": {"x": "y"}}, spec={"taints": [TAINT]}),
            Action.UPDATE_NODE_TAINTS | Action.UPDATE_NODE_LABELS,
        ),
    ],
)
def test_a_change_names_the_parts_that_pods_may_wait_for(old: Node, new: Node, change: Action) -> None:
    assert node_change(old, new) == change
