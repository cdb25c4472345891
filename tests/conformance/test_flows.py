"""The recorded flows, with every controller and the scheduler running."""

from __future__ import annotations

import pytest

from drakit.controllers import ALL
from tests.builders import cluster as controlled
from tests.builders.schedulercluster import on_loop, scheduling
from tests.conformance.flows import flow, flows, play
from tests.conformance.flows_cases import WITHOUT_SCHEDULER

EVICTING = "flow-18"
GANG = "flow-32"
POOL_UPDATED = "flow-45"


@pytest.mark.parametrize("name", [each for each in flows() if each not in (EVICTING, GANG, POOL_UPDATED)])
@on_loop
async def test_the_flow_ends_as_recorded(name: str) -> None:
    async with scheduling() as it:
        assert await play(it, flow(name)) == []


@on_loop
async def test_a_flow_that_was_recorded_in_the_middle_of_an_eviction_comes_by_there() -> None:
    async with scheduling() as it:
        assert await play(it, flow(EVICTING), lasting=False) == []


@on_loop
async def test_a_gang_whose_members_come_one_after_the_other_ends_as_recorded_and_its_waiting_is_told() -> None:
    """Upstream's words for what a member waits for tell of its own Permit; drakit counts who can be tried."""
    async with scheduling() as it:
        for what, recorded, ours in await play(it, flow(GANG), hurried=False):
            assert what == "events"
            assert _without_messages(recorded) == _without_messages(ours)
            assert {each[:2] for each in recorded ^ ours} == {("Pod", "p")}
            assert all("waiting for minCount pods from a gang to be scheduled" in each[4] for each in ours - recorded)


def _without_messages(events: set[tuple[str, ...]]) -> set[tuple[str, ...]]:
    return {each[:4] + each[5:] for each in events}


@on_loop
async def test_all_devices_of_a_pool_that_is_being_updated_are_refused_by_the_node_and_not_by_the_attempt() -> None:
    """As the specification has it; upstream calls it an error of the scheduler."""
    async with scheduling() as it:
        pods, events = await play(it, flow(POOL_UPDATED))
        assert (pods[0], events[0]) == ("Pod", "events")
        assert _without_messages(events[1]) == _without_messages(events[2])
        recorded, ours = ([each["status"].pop("conditions")[0] for each in side] for side in pods[1:])
        assert pods[1] == pods[2]
        assert [each["reason"] for each in recorded] == ["SchedulerError", "Unschedulable"]
        assert [each["reason"] for each in ours] == ["Unschedulable", "Unschedulable"]
        assert recorded[0]["message"].partition(": ")[2] in ours[0]["message"]


@pytest.mark.parametrize("name", WITHOUT_SCHEDULER)
@on_loop
async def test_the_flow_ends_as_recorded_without_a_scheduler(name: str) -> None:
    async with controlled.cluster() as it:
        await it.start(ALL)
        assert await play(it, flow(name)) == []


def test_every_other_flow_has_events_of_the_scheduler() -> None:
    scheduling_reasons = {"Scheduled", "FailedScheduling"}
    alone = {
        name for name in flows() if scheduling_reasons.isdisjoint(each[3] for each in flow(name)["final"]["events"])
    }
    assert alone == set(WITHOUT_SCHEDULER)
