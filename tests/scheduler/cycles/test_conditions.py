"""What is written into a pod's status, and when nothing is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from drakit.api.objects.meta import ObjectMeta
from drakit.api.objects.pods import Pod, PodCondition, PodStatus
from drakit.scheduler.cycles.conditions import nominated, not_scheduled

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
EARLIER = "2026-01-01T00:00:00Z"


def pod_with_condition(*, nominated_node_name: str = "", **condition: Any) -> Pod:
    known = (PodCondition(type="PodScheduled", **condition),) if condition else ()
    status = PodStatus(conditions=known, nominated_node_name=nominated_node_name)
    return Pod(metadata=ObjectMeta(name="p", generation=2), status=status)


def test_the_condition_says_why_and_of_which_generation() -> None:
    assert not_scheduled(pod_with_condition(), "Unschedulable", "full", NOW) == {
        "status": {
            "conditions": [
                {
                    "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "full",
                    "observedGeneration": 2, "lastProbeTime": None, "lastTransitionTime": "2026-01-02T03:04:05Z",
                }
            ]
        }
    }  # fmt: skip


def test_what_is_said_already_is_not_written_again() -> None:
    said = pod_with_condition(status="False", reason="Unschedulable", message="full", observed_generation=2)
    assert not_scheduled(said, "Unschedulable", "full", NOW) is None


def test_another_message_keeps_the_time_since_which_it_is_so() -> None:
    said = pod_with_condition(status="False", reason="Unschedulable", message="full", last_transition_time=EARLIER)
    patch = not_scheduled(said, "Unschedulable", "fuller", NOW)
    assert patch is not None
    assert patch["status"]["conditions"][0]["lastTransitionTime"] == EARLIER


def test_a_nomination_is_taken_back() -> None:
    said = pod_with_condition(
        nominated_node_name="a", status="False", reason="Unschedulable", message="full", observed_generation=2
    )
    assert not_scheduled(said, "Unschedulable", "full", NOW) == {"status": {"nominatedNodeName": None}}


def test_a_nomination_is_written_once() -> None:
    assert nominated(pod_with_condition(), "a") == {"status": {"nominatedNodeName": "a"}}
    assert nominated(pod_with_condition(nominated_node_name="a"), "a") is None
