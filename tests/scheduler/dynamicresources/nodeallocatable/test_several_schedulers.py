"""Schedulers that do not know of each other, and a claim that takes something of a node: one pod has it."""

from __future__ import annotations

import pytest

from drakit.client import CLAIMS
from tests.builders.podmanifests import device_class, node
from tests.builders.schedulercluster import SchedulingCluster, cluster, on_loop
from tests.scheduler.dynamicresources.nodeallocatable.scenes import (
    CPU,
    GATES,
    capacity_claim,
    charging_pod,
    cores,
    message_of,
    taken,
)
from tests.scheduler.dynamicresources.scenes import Plain, users_of
from tests.scheduler.dynamicresources.several_schedulers import race


def of(scheduler: str, name: str) -> Plain:
    return charging_pod(name, claims=("c",), schedulerName=scheduler)


async def furnish(it: SchedulingCluster, *, allocated: bool) -> None:
    await it.create(device_class("cpu", CPU), node("node-1"), cores(2), capacity_claim("c"))
    if allocated:
        result = {"request": "r", "driver": CPU, "pool": f"{CPU}-node-1", "device": "cpu0"}
        await it.set_status(CLAIMS, "c", {"allocation": {"devices": {"results": [result]}}})


@pytest.mark.parametrize("allocated", [False, True])
def test_of_two_pods_that_get_the_claim_at_the_same_time_the_second_gives_up(allocated: bool) -> None:
    async def run() -> None:
        async with cluster(GATES) as it:
            await furnish(it, allocated=allocated)
            release, stack = await race(it, of("slow", "p"), of("fast", "q"))
            async with stack:
                assert await it.node_of("q") == "node-1"
                release.set()
                await it.settle()
                words = "node allocatable resource claim c shared by multiple pods"
                assert await message_of(it, "p") == f'running PreBind plugin "DynamicResources": {words}'
                await it.run_for(30)
                assert await it.node_of("p") == ""
                assert "node allocatable resource claim c is already used by another pod" in await message_of(it, "p")
                assert await users_of(it) == ["q"]
                assert await taken(it, "p") == []

    on_loop(run)()
