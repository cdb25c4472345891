from __future__ import annotations

from typing import Any

from drakit.dashboard.flow import pod_flow
from tests.builders.objects import held

DAY = "2026-01-01T00:00:"


def lived(phase: str = "", **status: Any) -> dict[str, Any]:
    metadata = {"name": "p", "namespace": "default", "creationTimestamp": f"{DAY}00Z"}
    return {"metadata": metadata, "spec": {"nodeName": "node-a"}, "status": {"phase": phase, **status}}


def condition(kind: str, at: str, status: str = "True") -> dict[str, str]:
    return {"type": kind, "status": status, "lastTransitionTime": f"{DAY}{at}Z"}


def test_steps_stand_in_the_order_of_a_life_with_the_time_that_each_took() -> None:
    ended = {"state": {"terminated": {"startedAt": f"{DAY}05Z", "finishedAt": f"{DAY}30Z"}}}
    conditions = [condition("PodScheduled", "02"), condition("PodReadyToStartContainers", "04")]
    pod = lived("Succeeded", conditions=conditions, containerStatuses=[ended])
    claim = held("c", "gpu-0")
    found = pod_flow(pod, [claim], {claim.metadata.uid: f"{DAY}31Z"})
    assert [each.step for each in found] == [
        "created", "claim", "allocated", "scheduled", "bound", "prepared", "running", "ended", "released",
    ]  # fmt: skip
    taken = {each.step: each.seconds for each in found}
    assert (taken["scheduled"], taken["bound"], taken["prepared"], taken["running"]) == (2.0, 0.0, 2.0, 1.0)
    assert (taken["ended"], taken["released"]) == (25.0, 1.0)


def test_what_has_not_happened_has_no_time() -> None:
    pod = lived("Pending", conditions=[condition("PodScheduled", "02", "False")])
    del pod["spec"]["nodeName"]
    found = {each.step: each.at for each in pod_flow(pod, [], {})}
    assert found == {"created": f"{DAY}00Z", "scheduled": "", "bound": "", "running": "", "ended": ""}


def test_a_deleted_pod_has_one_step_more_before_what_came_after_it() -> None:
    claim = held("c", "gpu-0")
    found = pod_flow(lived("Running"), [claim], {claim.metadata.uid: f"{DAY}31Z"}, deleted=f"{DAY}30Z")
    assert [each.step for each in found][-2:] == ["deleted", "released"]
    found = pod_flow(lived("Running"), [claim], {claim.metadata.uid: f"{DAY}29Z"}, deleted=f"{DAY}30Z")
    assert [each.step for each in found][-2:] == ["released", "deleted"]


def test_a_time_that_cannot_be_read_spoils_nothing() -> None:
    pod = lived(conditions=[{"type": "PodScheduled", "status": "True", "lastTransitionTime": "soon"}])
    assert [each.seconds for each in pod_flow(pod, [], {})][1] is None
