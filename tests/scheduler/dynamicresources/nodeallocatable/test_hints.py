"""Which changes wake a pod whose claims take more of a node than it has left."""

from __future__ import annotations

from drakit.scheduler.dynamicresources.nodeallocatable import interests
from drakit.scheduler.framework import Action, ClusterEvent, EventResource, Hint
from tests.scheduler.dynamicresources.nodeallocatable.objects import charging_pod, container

WAITING = charging_pod(container("c", "claim"), name="waiting", claims=("claim",))
HINT = interests()[0].hint


def hint(waiting: object, old: object, new: object = None) -> Hint:
    assert HINT is not None
    return HINT(waiting, old, new)  # type: ignore[arg-type]


def test_a_pod_that_leaves_wakes_others_but_not_itself() -> None:
    assert hint(WAITING, charging_pod(container(cpu="1"), name="gone")) is Hint.QUEUE
    assert hint(WAITING, charging_pod(container(cpu="1"), name="waiting")) is Hint.SKIP


def test_a_pod_that_took_something_through_a_claim_alone_wakes_others() -> None:
    assert hint(WAITING, charging_pod(container(), name="gone", taken={"c": {"memory": "1Gi"}})) is Hint.QUEUE


def test_a_pod_that_took_nothing_wakes_nobody() -> None:
    assert hint(WAITING, charging_pod(container(), name="gone")) is Hint.SKIP
    extended = {"name": "c", "resources": {"requests": {"example.com/gpu": "1"}}}
    assert hint(WAITING, charging_pod(extended, name="gone")) is Hint.SKIP


def test_a_pod_that_asks_for_less_wakes_others() -> None:
    before, after = charging_pod(container(cpu="2"), name="big"), charging_pod(container(cpu="1"), name="big")
    assert hint(WAITING, before, after) is Hint.QUEUE
    assert hint(WAITING, after, before) is Hint.SKIP


def test_the_events_are_of_bound_pods_alone() -> None:
    event = interests()[0].event
    assert event.matches(ClusterEvent(EventResource.POD, Action.DELETE))
    assert event.matches(ClusterEvent(EventResource.POD, Action.UPDATE_POD_SCALE_DOWN))
    assert not event.matches(ClusterEvent(EventResource.POD, Action.ADD))
    assert not event.matches(ClusterEvent(EventResource.UNSCHEDULED_POD, Action.DELETE))
