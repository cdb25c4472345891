"""Events: one counts repeats, similar ones become one, and nobody tells without end."""

from __future__ import annotations

from typing import Any

from drakit.base.clock import FakeClock
from drakit.client import EVENTS, PODS
from drakit.client.correlation import BURST, COMBINED, REFILL_SECONDS, SIMILAR_SECONDS, EventCorrelator
from drakit.client.events import NORMAL, WARNING, EventRecorder
from tests.builders.cluster import Cluster, cluster, on_loop
from tests.builders.manifests import pod

SUBJECT = {"uid": "u", "name": "p"}


async def events_of(it: Cluster) -> list[Any]:
    return sorted(await it.all(EVENTS), key=lambda each: each.message)


@on_loop
async def test_one_event_counts_repeats() -> None:
    async with cluster() as it:
        await it.create(pod("p"))
        recorder, subject = (
            EventRecorder(it.client, it.clock, "test"),
            await it.client.get(PODS, "p", namespace="default"),
        )
        for _ in range(3):
            await recorder.tell("Pod", "v1", subject, "Failed", "no room", type_=WARNING)
        [event] = await events_of(it)
        assert (event.count, event.message) == (3, "no room")


@on_loop
async def test_many_messages_of_one_reason_become_one_event() -> None:
    async with cluster() as it:
        await it.create(pod("p"))
        recorder, subject = (
            EventRecorder(it.client, it.clock, "test"),
            await it.client.get(PODS, "p", namespace="default"),
        )
        for number in range(15):
            await recorder.tell("Pod", "v1", subject, "Failed", f"try {number:02}", type_=WARNING)
        combined, *others = await events_of(it)
        assert len(others) == 10
        assert (combined.message, combined.count) == (f"{COMBINED}try 14", 5)


def test_after_ten_quiet_minutes_a_message_stands_for_itself_again() -> None:
    clock = FakeClock()
    correlator = EventCorrelator(clock)
    for number in range(11):
        told = correlator.message(SUBJECT, WARNING, "Failed", str(number))
    assert told == f"{COMBINED}10"
    clock.advance(SIMILAR_SECONDS + 1)
    assert correlator.message(SUBJECT, WARNING, "Failed", "11") == "11"


def test_of_one_object_25_are_told_at_once_and_then_one_every_five_minutes() -> None:
    clock = FakeClock()
    correlator = EventCorrelator(clock)
    told = [correlator.message(SUBJECT, NORMAL, "Same", "again") for _ in range(BURST + 5)]
    assert told == ["again"] * BURST + [None] * 5
    clock.advance(REFILL_SECONDS)
    assert correlator.message(SUBJECT, NORMAL, "Same", "again") == "again"
    assert correlator.message(SUBJECT, NORMAL, "Same", "again") is None
    assert correlator.message({"uid": "v", "name": "q"}, NORMAL, "Same", "again") == "again"
    assert correlator.message(SUBJECT, WARNING, "Same", "again") == "again", "each type has its own"


def test_objects_of_which_nothing_is_told_any_more_are_forgotten() -> None:
    clock = FakeClock()
    correlator = EventCorrelator(clock)
    for number in range(3_000):
        correlator.message({"uid": str(number), "name": "p"}, NORMAL, "Same", "again")
        clock.advance(60.0)
    # One a minute: what is remembered is what the longest of both intervals holds, twice at most.
    assert len(correlator._similar) + len(correlator._tokens) < 4 * SIMILAR_SECONDS / 60.0


def test_an_object_that_told_too_much_is_remembered_while_many_others_come_and_go() -> None:
    clock = FakeClock()
    correlator = EventCorrelator(clock)
    for _ in range(BURST):
        assert correlator.message(SUBJECT, NORMAL, "Same", "again") == "again"
    for number in range(1_000):
        correlator.message({"uid": str(number), "name": "p"}, NORMAL, "Same", "again")
        clock.advance(0.1)
    assert correlator.message(SUBJECT, NORMAL, "Same", "again") is None
