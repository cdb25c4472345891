"""PreEnqueue: pods that may not be tried yet."""

from __future__ import annotations

from drakit.api.objects.pods import Pod
from drakit.base.clock import FakeClock
from drakit.scheduler.framework import SUCCESS, Action, ClusterEvent, EventResource, PluginStatus
from tests.scheduler.queue.pods import FIT, GATES, NODE_ADDED, RecordedMetrics, names, queue, queued_pod, refused, where

GROUP_ADDED = ClusterEvent(EventResource.POD_GROUP, Action.ADD)


class Gate:
    """Closed for the pods that are named."""

    def __init__(self, *names: str) -> None:
        self.closed = set(names)
        self.asked = 0

    def __call__(self, pod: Pod) -> PluginStatus:
        self.asked += 1
        return PluginStatus.unresolvable("not yet").by(GATES) if pod.metadata.name in self.closed else SUCCESS


def test_a_gated_pod_stays_outside_until_its_gate_is_removed() -> None:
    made = queue()
    made.add(queued_pod("a", gate="quota"))
    assert where(made, "a") == "gated"
    assert names(made) == []
    made.update(queued_pod("a", gate="quota"), queued_pod("a", gate="other"))
    assert where(made, "a") == "gated"
    made.update(queued_pod("a", gate="other"), queued_pod("a"))
    assert names(made) == ["a"]


def test_a_gate_is_asked_again_on_events_that_its_plugin_hopes_for_and_no_others() -> None:
    gate = Gate("a")
    made = queue(pre_enqueue=gate)
    made.add(queued_pod("a"))
    gate.closed.clear()
    asked = gate.asked
    made.move(NODE_ADDED, None, "node")
    made.move(GROUP_ADDED, None, ["other"])
    assert (where(made, "a"), gate.asked) == ("gated", asked)
    made.move(GROUP_ADDED, None, ["a"])
    assert where(made, "a") == "active"


def test_a_gate_that_stays_closed_keeps_the_pod() -> None:
    made = queue(pre_enqueue=Gate("a"))
    made.add(queued_pod("a"))
    made.move(GROUP_ADDED, None, ["a"])
    assert where(made, "a") == "gated"
    assert made.take(["uid-a"]) == []


def test_a_gate_that_nobody_opened_by_an_event_is_asked_again_after_five_minutes() -> None:
    clock, gate = FakeClock(), Gate("a")
    made = queue(clock, pre_enqueue=gate)
    made.add(queued_pod("a"))
    clock.advance(300)
    made.flush()
    assert where(made, "a") == "gated"
    gate.closed.clear()
    clock.advance(299)
    made.flush()
    assert where(made, "a") == "gated"
    clock.advance(1)
    made.flush()
    assert where(made, "a") == "active"


def test_a_refused_pod_that_is_woken_while_its_gate_is_closed_becomes_gated() -> None:
    clock, gate = FakeClock(), Gate()
    made = queue(clock, pre_enqueue=gate)
    refused(made, "a", FIT)
    gate.closed.add("a")
    made.move(NODE_ADDED, None, "node")
    assert where(made, "a") == "gated"
    gate.closed.clear()
    made.update(queued_pod("a"), queued_pod("a"))
    assert where(made, "a") == "backoff"
    clock.advance(1)
    assert names(made) == ["a"]


def test_a_gate_that_fails_keeps_the_pod_outside_and_is_asked_again_by_any_event() -> None:
    broken = [True]

    def gate(_pod: Pod) -> PluginStatus:
        if broken:
            raise LookupError("no cache yet")
        return SUCCESS

    made = queue(pre_enqueue=gate)
    made.add(queued_pod("a"))
    assert where(made, "a") == "gated"
    broken.clear()
    made.move(NODE_ADDED, None, "node")
    assert where(made, "a") == "active"


def test_metrics_say_who_came_where_why_and_because_of_which_plugin_pods_wait() -> None:
    metrics = RecordedMetrics()
    made = queue(metrics=metrics, pop_early=True)
    made.add(queued_pod("gated", gate="g"))
    refused(made, "a", FIT)
    assert metrics.refused == {(GATES, "default-scheduler"): 1, (FIT, "default-scheduler"): 1}
    made.move(NODE_ADDED, None, "node")
    made.update(queued_pod("gated", gate="g"), queued_pod("gated"))
    assert sorted(names(made)) == ["a", "gated"]
    assert set(metrics.refused.values()) == {0}
    assert metrics.came["active", "UnscheduledPodAdd"] == 1
    assert metrics.came["unschedulable", "UnscheduledPodAdd"] == 1
    assert metrics.came["unschedulable", "ScheduleAttemptFailure"] == 1
    assert metrics.came["active", "PopFromBackoffQ"] == 1
    assert metrics.came["backoff", "NodeAdd"] == 1


def test_deleting_a_pod_takes_it_from_the_metrics() -> None:
    metrics = RecordedMetrics()
    made = queue(metrics=metrics)
    made.add(queued_pod("gated", gate="g"))
    refused(made, "a", FIT)
    made.delete("uid-a")
    made.delete("uid-gated")
    assert set(metrics.refused.values()) == {0}


def test_a_pod_that_stays_where_it_is_does_not_come_in_again() -> None:
    metrics = RecordedMetrics()
    made = queue(metrics=metrics)
    made.add(queued_pod("gated", gate="g"))
    refused(made, "a", FIT)
    before = dict(metrics.came)
    made.update(queued_pod("a"), queued_pod("a", phase="Pending"))
    made.update(queued_pod("gated", gate="g"), queued_pod("gated", gate="h"))
    assert metrics.came == before
