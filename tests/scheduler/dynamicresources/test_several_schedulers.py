"""Schedulers that do not know of each other: one wins a claim, and no device is given twice."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest

from drakit.client import CLAIMS, PODS, InProcess
from tests.builders.cluster import Fatal
from tests.builders.documents import DRIVER
from tests.builders.manifests import allocation, claim
from tests.builders.podmanifests import device_class, node, resource_slice
from tests.builders.schedulercluster import cluster, on_loop
from tests.scheduler.dynamicresources.faults import another_scheduler
from tests.scheduler.dynamicresources.scenes import (
    GATES,
    Plain,
    bare_slice,
    devices_of,
    exactly,
    message_of,
    scene,
    user,
    users_of,
)
from tests.scheduler.dynamicresources.several_schedulers import race


def of(scheduler: str, name: str, claim_name: str = "c") -> Plain:
    return user(name, claim_name, spec={"schedulerName": scheduler})


@on_loop
async def test_of_two_schedulers_with_one_claim_the_second_uses_what_the_first_allocated() -> None:
    async with cluster(GATES) as it:
        await it.create(device_class(), node("node-1"), resource_slice("s", "d0", "d1"))
        release, stack = await race(it, claim(), of("slow", "p"), of("fast", "q"))
        async with stack:
            assert await it.node_of("q") == "node-1"
            release.set()
            await it.run_for(5)
            assert await it.node_of("p") == "node-1"
            assert sorted(await users_of(it)) == ["p", "q"]
            assert await devices_of(it) == ["d0"]


@on_loop
async def test_of_two_schedulers_with_one_device_the_second_gives_up() -> None:
    async with cluster(GATES) as it:
        await it.create(device_class(), node("node-1"), resource_slice("s", "d0"))
        release, stack = await race(it, claim("a"), claim("b"), of("slow", "p", "a"), of("fast", "q", "b"))
        async with stack:
            assert await devices_of(it, "b") == ["d0"]
            release.set()
            await it.settle()
            words = f"claim default/a: device {DRIVER}/pool/d0 got allocated elsewhere in the meantime"
            assert await message_of(it, "p") == f'running PreBind plugin "DynamicResources": {words}'
            await it.run_for(10)
            assert await it.node_of("p") == ""
            assert await devices_of(it, "a") == []
            assert (await message_of(it, "p")).startswith("0/1 nodes are available: 1 cannot allocate all claims.")
            await it.create(resource_slice("more", "d1", pool="more"))
            await it.run_for(10)
            assert await it.node_of("p") == "node-1"
            assert await devices_of(it, "a") == ["d1"]


@on_loop
async def test_a_claim_that_came_too_late_is_used_by_nobody_who_shares_it() -> None:
    """The second pod of the late claim finds it allocated and reserved, and its device is somebody else's."""
    async with cluster(GATES) as it:
        await it.create(device_class(), node("node-1"), resource_slice("s", "d0"))
        late = [of("slow", "p", "a"), of("slow", "p2", "a")]
        release, stack = await race(it, claim("a"), claim("b"), *late, of("fast", "q", "b"))
        async with stack:
            release.set()
            for _ in range(20):
                await it.run_for(1)
                assert [await it.node_of(each) for each in ("p", "p2")] == ["", ""]
            assert await it.node_of("q") == "node-1"
            assert await devices_of(it, "a") == []


@on_loop
async def test_of_two_claims_with_one_device_the_one_whose_user_runs_keeps_it() -> None:
    """Somebody stored both without a look at the other."""
    async with scene("d0") as it:
        await it.create(claim("a"), user("p", "a"))
        assert await it.node_of("p") == "node-1"
        await it.create(claim("b"))
        await it.set_status(CLAIMS, "b", {"allocation": allocation("d0")})
        await it.create(user("p2", "a"))
        assert await it.node_of("p2") == "node-1"
        await it.create(user("q", "b"))
        await it.run_for(10)
        assert await it.node_of("q") == ""
        assert [await devices_of(it, each) for each in "ab"] == [["d0"], []]


SHARED = {"name": "d0", "allowMultipleAllocations": True, "capacity": {"memory": {"value": "10Gi"}}}
COUNTERS = {"name": "cards", "counters": {"memory": {"value": "10Gi"}}}


def partition(name: str) -> Plain:
    draws = [{"counterSet": "cards", "counters": {"memory": {"value": "6Gi"}}}]
    return {"name": name, "consumesCounters": draws, "attributes": {"part": {"string": name}}}


def one_partition(name: str) -> Plain:
    return exactly(selectors=[{"cel": {"expression": f'device.attributes["{DRIVER}"].part == "{name}"'}}])


@on_loop
async def test_shares_of_a_device_that_exceed_it_are_found_out() -> None:
    async with cluster(GATES) as it:
        await it.create(device_class(), node("node-1"), bare_slice("s", [SHARED]))
        six = exactly(capacity={"requests": {"memory": "6Gi"}})
        release, stack = await race(it, claim("a", six), claim("b", six), of("slow", "p", "a"), of("fast", "q", "b"))
        async with stack:
            release.set()
            await it.run_for(10)
            assert await it.node_of("q") == "node-1"
            assert await it.node_of("p") == ""
            assert await devices_of(it, "a") == []


@on_loop
async def test_shares_of_a_device_that_fit_stay() -> None:
    async with cluster(GATES) as it:
        await it.create(device_class(), node("node-1"), bare_slice("s", [SHARED]))
        four = exactly(capacity={"requests": {"memory": "4Gi"}})
        release, stack = await race(it, claim("a", four), claim("b", four), of("slow", "p", "a"), of("fast", "q", "b"))
        async with stack:
            release.set()
            await it.settle()
            assert [await it.node_of(each) for each in "pq"] == ["node-1", "node-1"]


@on_loop
async def test_partitions_that_draw_too_much_are_found_out() -> None:
    """Each scheduler takes another partition of the card, and the card has room for one."""
    async with cluster(GATES) as it:
        counters = bare_slice("counters", [])
        del counters["spec"]["devices"]
        counters["spec"]["sharedCounters"] = [COUNTERS]
        parts = bare_slice("parts", [partition("d0"), partition("d1")])
        for each in (counters, parts):
            each["spec"]["pool"]["resourceSliceCount"] = 2
        await it.create(device_class(), node("node-1"), counters, parts)
        claims = claim("a", one_partition("d0")), claim("b", one_partition("d1"))
        release, stack = await race(it, *claims, of("slow", "p", "a"), of("fast", "q", "b"))
        async with stack:
            release.set()
            await it.run_for(10)
            assert [await it.node_of("p"), await it.node_of("q")] == ["", "node-1"]
            assert [await devices_of(it, "a"), await devices_of(it, "b")] == [[], ["d1"]]


@pytest.mark.parametrize("seed", range(6))
def test_many_pods_of_three_schedulers_fill_all_devices_and_none_twice(seed: int) -> None:
    async def run() -> None:
        async with cluster(GATES) as it, AsyncExitStack() as stack:
            names = [f"d{number}" for number in range(10)]
            await it.create(device_class(), node("node-1"), resource_slice("s", *names))
            for number in range(15):
                await it.client.create(claim(f"c{number}"))
                await it.client.create(of(f"s{number % 3}", f"p{number}", f"c{number}"))
            for number in range(3):
                transport = Fatal(InProcess(it.server))
                scheduler = another_scheduler(it, transport, name=f"s{number}", seed=seed * 3 + number, settle=False)
                await stack.enter_async_context(scheduler)
            await it.run_for(120)
            placed = {each.metadata.name for each in await it.all(PODS) if each.spec.node_name}
            claims = [each for each in await it.all(CLAIMS) if each.status.allocation]
            held_devices = [result.device for each in claims for result in each.status.allocation.devices.results]
            assert sorted(held_devices) == sorted(names)
            assert {f"p{each.metadata.name[1:]}" for each in claims} == placed

    on_loop(run)()
