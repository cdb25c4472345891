"""A scheduler that dies after any of its writes and is started again comes to the same end."""

from __future__ import annotations

import pytest

from drakit.client import CLAIMS
from tests.builders.manifests import claim
from tests.builders.schedulercluster import SchedulingCluster, on_loop
from tests.scheduler.dynamicresources.scenes import Plain, by_name, devices_of, exactly, pod, scene, user, users_of

OBJECTS: list[Plain] = [
    claim("a", exactly(count=2)),
    claim("b"),
    claim("shared"),
    pod("p", claims=[by_name("a", "x"), by_name("b", "y")]),
    user("q", "shared"),
    user("r", "shared"),
]


async def check(it: SchedulingCluster) -> None:
    assert [await it.node_of(each) for each in "pqr"] == ["node-1"] * 3
    assert [await users_of(it, each) for each in ("a", "b")] == [["p"], ["p"]]
    assert sorted(await users_of(it, "shared")) == ["q", "r"]
    held = [device for each in ("a", "b", "shared") for device in await devices_of(it, each)]
    assert sorted(held) == ["d0", "d1", "d2", "d3"]
    assert len(await it.all(CLAIMS)) == 3


@pytest.mark.parametrize("write", range(1, 14))
def test_killed_after_any_write_and_started_again(write: int) -> None:
    async def run() -> None:
        async with scene("d0", "d1", "d2", "d3") as it:
            await it.kill_scheduler()
            await it.create(*OBJECTS)
            await it.start_scheduler(dies_after=write)
            await it.settle()
            await it.kill_scheduler()
            await it.start_scheduler()
            await it.run_for(5)
            await check(it)

    on_loop(run)()


@on_loop
async def test_the_scenario_has_that_many_writes() -> None:
    async with scene("d0", "d1", "d2", "d3") as it:
        await it.kill_scheduler()
        await it.create(*OBJECTS)
        await it.start_scheduler()
        await it.run_for(5)
        await check(it)
        assert it.scheduler_transport is not None
        assert len(it.scheduler_transport.writes) >= 13
