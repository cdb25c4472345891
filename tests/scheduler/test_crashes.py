"""A scheduler that dies after any of its writes, and the next one, which finds what it left."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import count

import pytest

from drakit.api.objects.claims import ResourceClaim
from drakit.client import CLAIMS, PODS
from tests.builders.podmanifests import by_name, by_template, claim, device_class, node, pod, resource_slice, template
from tests.builders.schedulercluster import SchedulingCluster, on_loop, scheduling

Scenario = Callable[[SchedulingCluster], Awaitable[None]]


async def plain_pods(it: SchedulingCluster) -> None:
    await it.create(node("a", room={"cpu": "2"}), *(pod(f"p{number}", cpu="1") for number in range(3)))


async def pods_with_claims(it: SchedulingCluster) -> None:
    await it.create(node("a"), node("b"), device_class(), claim("shared"), template())
    await it.create(resource_slice("slice-a", "d0", "d1", node="a", pool="a"))
    await it.create(pod("p0", claims=[by_name("shared")]), pod("p1", claims=[by_name("shared")]))
    await it.create(pod("p2", claims=[by_template()]), pod("p3", claims=[by_template()]))


async def state(it: SchedulingCluster) -> list[object]:
    """Who is where and why not, and who has how many devices; which of equal ones may differ."""
    pods = [
        (each.metadata.name, each.spec.node_name, [c.reason for c in each.status.conditions])
        for each in await it.all(PODS)
    ]
    return sorted([*pods, *map(held, await it.all(CLAIMS))], key=str)


def held(it: ResourceClaim) -> tuple[object, ...]:
    results = it.status.allocation.devices.results if it.status.allocation else ()
    users = sorted(each.name for each in it.status.reserved_for)
    return (users, len(results), it.metadata.finalizers)


def devices(claims: list[ResourceClaim]) -> list[str]:
    return [each.device for it in claims if it.status.allocation for each in it.status.allocation.devices.results]


@pytest.mark.parametrize("scenario", [plain_pods, pods_with_claims])
@on_loop
async def test_a_scheduler_that_died_after_any_write_is_taken_over_by_the_next(scenario: Scenario) -> None:
    async with scheduling() as it:
        await scenario(it)
        await it.run_for(20)
        wanted = await state(it)
    for last in count(1):
        async with scheduling(dies_after=last) as it:
            await scenario(it)
            await it.run_for(20)
            assert it.scheduler_transport is not None
            died = it.scheduler_transport.died.is_set()
            await it.kill_scheduler()
            await it.start_scheduler()
            await it.run_for(30)
            given = devices(await it.all(CLAIMS))
            assert len(given) == len(set(given)), f"after {last} writes"
            assert await state(it) == wanted, f"after {last} writes"
        if not died:
            break
    assert last > 5
