"""The recorded flows, with every controller and the scheduler running."""

from __future__ import annotations

import pytest

from drakit.controllers import ALL
from tests.conformance.flows import flow, flows, play
from tests.controllers import cluster as controlled
from tests.scheduler.cluster import on_loop, scheduling

WITHOUT_SCHEDULER = ("flow-29", "flow-35", "flow-36", "flow-51", "flow-61")
GANG = "flow-32"
POOL_UPDATED = "flow-45"


@pytest.mark.parametrize("name", [each for each in flows() if each not in (GANG, POOL_UPDATED)])
@on_loop
async def test_the_flow_ends_as_recorded(name: str) -> None:
    async with scheduling() as it:
        assert await play(it, flow(name)) == []


@on_loop
async def test_a_gang_whose_members_come_one_after_the_other_ends_as_recorded() -> None:
    async with scheduling() as it:
        assert await play(it, flow(GANG), hurried=False) == []


@on_loop
async def test_all_devices_of_a_pool_that_is_being_updated_are_refused_by_the_node_and_not_by_the_attempt() -> None:
    """As the specification has it; upstream calls it an error of the scheduler."""
    async with scheduling() as it:
        differences = await play(it, flow(POOL_UPDATED))
        assert [what for what, _, _ in differences] == ["Pod"]
        recorded, ours = ([each["status"].pop("conditions")[0] for each in side] for side in differences[0][1:])
        assert differences[0][1] == differences[0][2]
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
