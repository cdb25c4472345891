"""What decides about a pod before any node is looked at."""

from __future__ import annotations

from drakit.scheduler.framework import Action, Code
from drakit.scheduler.plugins.schedulinggates import SchedulingGates
from tests.scheduler.plugins.making import hint, make_pod


def test_a_pod_with_gates_waits_and_says_for_which() -> None:
    status = SchedulingGates().pre_enqueue(make_pod(schedulingGates=[{"name": "a.example/x"}, {"name": "b"}]))
    assert (status.code, status.message) == (Code.UNRESOLVABLE, "waiting for scheduling gates: [a.example/x b]")
    assert SchedulingGates().pre_enqueue(make_pod()).ok


def test_gates_that_are_taken_away_wake_their_pod_and_no_other() -> None:
    plugin, pod = SchedulingGates(), make_pod("p")
    assert hint(plugin, "TargetPod", Action.UPDATE_POD_GATES, pod, pod, pod) == "QUEUE"
    assert hint(plugin, "TargetPod", Action.UPDATE_POD_GATES, pod, pod, make_pod("other")) == "SKIP"
