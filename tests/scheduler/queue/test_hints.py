"""What wakes a pod, and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from drakit.api.objects.pods import Pod
from drakit.scheduler.framework import Action, ClusterEvent, EventResource, EventScope, Hint, Interest
from drakit.scheduler.framework.events import EVERYTHING
from tests.scheduler.queue.pods import (
    CLAIM_CHANGED,
    CLAIMS,
    FIT,
    NODE_ADDED,
    named,
    popped,
    queue,
    queued_pod,
    refused,
    where,
)

WITH_CLAIM: dict[str, Any] = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "gpu-1"}]}


def test_an_event_wakes_only_pods_that_an_interested_plugin_refused() -> None:
    made = queue()
    refused(made, "fit", FIT)
    refused(made, "claims", CLAIMS)
    made.move(NODE_ADDED, None, "node")
    assert (where(made, "fit"), where(made, "claims")) == ("backoff", "unschedulable")


def test_only_pods_wake_of_which_the_hint_says_so() -> None:
    made = queue()
    refused(made, "helped", CLAIMS)
    refused(made, "other", CLAIMS)
    made.move(CLAIM_CHANGED, None, ["helped"])
    assert (where(made, "helped"), where(made, "other")) == ("backoff", "unschedulable")


def test_plugins_are_asked_by_name_whatever_the_order_of_a_set() -> None:
    asked: list[str] = []
    names = [f"plugin-{each}" for each in "qwertyuiop"]

    def hint_of(name: str) -> Any:
        def hint(*_: Any) -> Hint:
            asked.append(name)
            return Hint.SKIP

        return hint

    made = queue(interests={name: [Interest(NODE_ADDED, hint_of(name))] for name in names})
    refused(made, "a", *names)
    made.move(NODE_ADDED, None, "node")
    assert asked == sorted(names)


def test_one_plugin_of_several_that_refused_is_enough() -> None:
    made = queue()
    refused(made, "a", FIT, CLAIMS)
    made.move(CLAIM_CHANGED, None, [])
    assert where(made, "a") == "unschedulable"
    made.move(NODE_ADDED, None, "node")
    assert where(made, "a") == "backoff"


def test_hints_of_plugins_that_did_not_refuse_are_not_asked() -> None:
    asked = []

    def hint(pod: Pod, _old: Any, _new: Any) -> Hint:
        asked.append(pod.metadata.name)
        return Hint.SKIP

    made = queue(interests={FIT: [Interest(NODE_ADDED, hint)], CLAIMS: [Interest(CLAIM_CHANGED, named)]})
    refused(made, "a", CLAIMS)
    refused(made, "b", FIT)
    made.move(NODE_ADDED, None, "node")
    assert asked == ["b"]


def test_only_pods_in_the_scope_of_a_change_are_asked() -> None:
    asked = []

    def hint(pod: Pod, _old: Any, _new: Any) -> Hint:
        asked.append(pod.metadata.name)
        return Hint.SKIP

    def claims(pod: Pod) -> list[str | None]:
        return [each.resource_claim_name for each in pod.status.resource_claim_statuses]

    scope = EventScope(claims, lambda _old, new: [new] if new else None)
    made = queue(interests={CLAIMS: [Interest(CLAIM_CHANGED, hint, scope)]})
    refused(made, "a", CLAIMS)
    refused(made, "b", CLAIMS)
    made.update(queued_pod("b"), queued_pod("b", **WITH_CLAIM))
    made.move(CLAIM_CHANGED, None, "gpu-1")
    made.move(CLAIM_CHANGED, None, "gpu-2")
    assert asked == ["b"]
    made.move(CLAIM_CHANGED, None, "")
    assert asked == ["b", "a", "b"]


def test_a_scope_that_fails_forgets_nobody() -> None:
    def broken(*_: Any) -> list[str]:
        raise KeyError("no such claim")

    for scope in (EventScope(broken, lambda _old, new: new), EventScope(lambda pod: [pod.metadata.name], broken)):
        made = queue(interests={CLAIMS: [Interest(CLAIM_CHANGED, named, scope)]})
        refused(made, "a", CLAIMS)
        made.move(CLAIM_CHANGED, None, ["a"])
        assert where(made, "a") == "backoff"


def test_a_plugin_without_declared_interests_hopes_for_everything() -> None:
    made = queue()
    refused(made, "a", "Unknown")
    made.move(ClusterEvent(EventResource.CLASS, Action.DELETE), None, None)
    assert where(made, "a") == "backoff"


def test_a_plugin_with_no_interests_at_all_is_woken_by_nothing() -> None:
    made = queue(interests={FIT: []})
    refused(made, "a", FIT)
    made.move(NODE_ADDED, None, "node")
    assert where(made, "a") == "unschedulable"


def test_a_hint_that_fails_wakes_the_pod_rather_than_forget_it(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_pod: Pod, _old: Any, _new: Any) -> Hint:
        raise KeyError("no such claim")

    made = queue(interests={FIT: [Interest(NODE_ADDED, broken)]})
    refused(made, "a", FIT)
    made.move(NODE_ADDED, None, "node")
    assert where(made, "a") == "backoff"
    assert "no such claim" in caplog.text


def test_when_anything_may_have_changed_all_pods_wake_and_nobody_is_asked() -> None:
    made = queue()
    refused(made, "a", CLAIMS)
    refused(made, "b", pending=[CLAIMS])
    made.move(EVERYTHING, None, None)
    assert (where(made, "a"), where(made, "b")) == ("backoff", "backoff")


def test_an_update_that_cannot_help_leaves_a_pod_where_it_is_in_its_newest_form() -> None:
    made = queue()
    refused(made, "a", CLAIMS)
    made.update(queued_pod("a"), queued_pod("a", priority=3))
    assert where(made, "a") == "unschedulable"
    queued = made.get("uid-a")
    assert queued is not None
    assert queued.priority == 3


def test_an_update_that_a_plugin_hopes_for_wakes_the_pod() -> None:
    made = queue()
    refused(made, "a", CLAIMS)
    refused(made, "b", pending=[CLAIMS])
    for name in "ab":
        made.update(queued_pod(name), queued_pod(name, **WITH_CLAIM))
    assert (where(made, "a"), where(made, "b")) == ("backoff", "active")


def test_an_event_during_an_attempt_is_looked_at_when_the_pod_is_put_back() -> None:
    made = queue()
    for name in ("helped", "other", "awaiting"):
        made.add(queued_pod(name))
    helped, other, awaiting = popped(made), popped(made), popped(made)
    made.move(CLAIM_CHANGED, None, ["helped", "awaiting"])
    made.move(NODE_ADDED, None, "node")
    made.put_back(helped, unschedulable=[CLAIMS])
    made.put_back(other, unschedulable=[CLAIMS])
    made.put_back(awaiting, unschedulable=[FIT], pending=[CLAIMS])
    assert [where(made, name) for name in ("helped", "other", "awaiting")] == ["backoff", "unschedulable", "active"]


def test_an_event_before_an_attempt_does_not_count_for_it() -> None:
    made = queue()
    made.add(queued_pod("early"))
    early = popped(made)
    made.move(NODE_ADDED, None, "node")
    made.add(queued_pod("late"))
    late = popped(made)
    made.put_back(late, unschedulable=[FIT])
    made.put_back(early, unschedulable=[FIT])
    assert (where(made, "late"), where(made, "early")) == ("unschedulable", "backoff")


def test_an_update_during_an_attempt_counts_for_that_pod_alone_and_is_kept() -> None:
    made = queue()
    made.add(queued_pod("a"))
    made.add(queued_pod("b"))
    a, b = popped(made), popped(made)
    made.update(queued_pod("a"), queued_pod("a", **WITH_CLAIM))
    assert not a.pod.view.status.resource_claim_statuses  # the attempt goes on with what it began with
    made.put_back(a, unschedulable=[CLAIMS])
    made.put_back(b, unschedulable=[CLAIMS])
    assert (where(made, "a"), where(made, "b")) == ("backoff", "unschedulable")
    assert a.pod.view.status.resource_claim_statuses


def test_a_pod_that_is_deleted_during_its_attempt_is_not_put_back() -> None:
    made = queue()
    made.add(queued_pod("a"))
    queued = popped(made)
    made.delete("uid-a")
    made.put_back(queued, unschedulable=[FIT])
    assert where(made, "a") == "nowhere"
    assert made.is_idle


def test_a_pod_that_comes_back_during_its_attempt_is_put_back() -> None:
    made = queue()
    made.add(queued_pod("a"))
    queued = popped(made)
    made.delete("uid-a")
    made.add(queued_pod("a", priority=4))
    assert made.pop_now() is None  # never two attempts at one pod
    made.put_back(queued, error=True)
    assert where(made, "a") == "backoff"
    assert queued.priority == 4


def test_put_back_of_a_pod_that_is_done_changes_nothing() -> None:
    made = queue()
    made.add(queued_pod("a"))
    queued = popped(made)
    made.done("uid-a")
    made.put_back(queued, unschedulable=[FIT])
    assert where(made, "a") == "nowhere"


def test_events_are_kept_only_as_long_as_a_pod_is_in_flight_that_may_need_them() -> None:
    made = queue()
    for name in "abc":
        made.add(queued_pod(name))
    made.move(NODE_ADDED, None, 0)
    a = popped(made)
    made.move(NODE_ADDED, None, 1)
    b = popped(made)
    made.move(NODE_ADDED, None, 2)
    assert made._flights.events == 2
    made.done(a.uid)
    assert made._flights.events == 1
    c = popped(made)
    made.done(c.uid)
    assert made._flights.events == 1
    made.put_back(b, unschedulable=[FIT])
    assert made._flights.events == 0
    assert where(made, "b") == "backoff"


def test_what_a_pod_gave_back_itself_wakes_others_only() -> None:
    made = queue()
    refused(made, "itself", FIT)
    refused(made, "other", FIT)
    made.move(NODE_ADDED, None, "node", exclude="uid-itself")
    assert (where(made, "itself"), where(made, "other")) == ("unschedulable", "backoff")
