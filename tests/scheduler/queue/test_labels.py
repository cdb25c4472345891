"""Events by the names that kube-scheduler's metrics have."""

from __future__ import annotations

import pytest

from drakit.scheduler.framework import Action, ClusterEvent, EventResource


@pytest.mark.parametrize(
    ("resource", "action", "label"),
    [
        (EventResource.POD, Action.DELETE, "AssignedPodDelete"),
        (EventResource.UNSCHEDULED_POD, Action.ADD, "UnscheduledPodAdd"),
        (EventResource.TARGET_POD, Action.UPDATE_POD_GATES, "UnscheduledPodUpdatePodSchedulingGatesEliminated"),
        (EventResource.NODE, Action.UPDATE_NODE_TAINTS, "NodeUpdateNodeTaint"),
        (EventResource.NODE, Action.UPDATE_NODE_TAINTS | Action.UPDATE_NODE_LABELS, "NodeUpdate"),
        (EventResource.CLAIM, Action.UPDATE, "resource.k8s.io/ResourceClaimUpdate"),
        (EventResource.WILDCARD, Action.ALL, "*All"),
    ],
)
def test_an_event_is_named_as_upstream_names_it(resource: EventResource, action: Action, label: str) -> None:
    assert ClusterEvent(resource, action).label == label


def test_every_single_action_has_a_name() -> None:
    labels = [ClusterEvent(EventResource.NODE, each).label for each in Action]
    assert len(set(labels)) == len(labels)
