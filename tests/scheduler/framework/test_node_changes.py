"""Which changes of a node are worth telling."""

from __future__ import annotations

from typing import Any

import pytest

from drakit.api.objects.cluster import Node
from drakit.api.objects.plain import from_plain
from drakit.scheduler.framework import Action
from drakit.scheduler.framework.changes import node_change


def node_with(**parts: Any) -> Node:
    return from_plain(Node, {"metadata": {"name": "a"}, **parts})


def ready(status: str, beat: str) -> dict[str, Any]:
    return {"conditions": [{"type": "Ready", "status": status, "lastHeartbeatTime": beat}]}


TAINT = {"key": "k", "effect": "NoSchedule"}
BEAT, NEXT = "2026-01-01T00:00:00Z", "2026-01-01T00:00:10Z"


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        (node_with(), node_with(), Action(0)),
        (node_with(), node_with(spec={"taints": [TAINT]}), Action.UPDATE_NODE_TAINTS),
        (node_with(spec={"unschedulable": True}), node_with(), Action.UPDATE_NODE_TAINTS),
        (node_with(), node_with(spec={"unschedulable": True}), Action(0)),
        (node_with(), node_with(status={"allocatable": {"cpu": "1"}}), Action.UPDATE_NODE_ALLOCATABLE),
        (node_with(), node_with(status={"capacity": {"cpu": "1"}}), Action(0)),
        (node_with(), node_with(metadata={"name": "a", "labels": {"x": "y"}}), Action.UPDATE_NODE_LABELS),
        (node_with(), node_with(metadata={"name": "a", "annotations": {"x": "y"}}), Action.UPDATE_NODE_ANNOTATIONS),
        (node_with(status=ready("True", BEAT)), node_with(status=ready("True", NEXT)), Action(0)),
        (node_with(status=ready("True", BEAT)), node_with(status=ready("False", BEAT)), Action.UPDATE_NODE_CONDITION),
        (
            node_with(),
            node_with(metadata={"name": "a", "labels": {"x": "y"}}, spec={"taints": [TAINT]}),
            Action.UPDATE_NODE_TAINTS | Action.UPDATE_NODE_LABELS,
        ),
    ],
)
def test_a_change_names_the_parts_that_pods_may_wait_for(old: Node, new: Node, change: Action) -> None:
    assert node_change(old, new) == change
