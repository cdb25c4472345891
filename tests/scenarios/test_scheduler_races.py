"""Whatever happens at the same time: no device is free that somebody is about to have, and none is given twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from drakit.api.exchange import Request, Response
from drakit.api.requests import results_of
from drakit.base.gates import FeatureGates
from drakit.client import CLAIMS, PODS, InProcess
from drakit.controllers.composition import ALL
from drakit.scheduler.dynamicresources import DynamicResources
from drakit.scheduler.framework import Handle
from drakit.scheduler.plugins import MAKERS
from tests.builders.cluster import WRITES, Fatal
from tests.builders.documents import DRIVER
from tests.builders.manifests import claim
from tests.builders.podmanifests import by_template, device_class, node, pod, resource_slice, template
from tests.builders.schedulercluster import SchedulingCluster, cluster, on_loop, scheduling
from tests.scheduler.dynamicresources.extended.stage import asking, gpu_class
from tests.scheduler.dynamicresources.faults import (
    Fault,
    Unreliable,
    after,
    another_scheduler,
    answer,
    lost,
    unsent,
    well,
)
from tests.scheduler.dynamicresources.nodeallocatable import scenes as allocatable
from tests.scheduler.dynamicresources.scenes import user

GATES = FeatureGates.defaults()
NAMES = [f"d{number}" for number in range(8)]


async def furnish(it: SchedulingCluster, nodes: int = 1) -> None:
    await it.create(device_class(), template())
    for number in range(1, nodes + 1):
        name = f"node-{number}"
        await it.create(node(name), resource_slice(name, *NAMES, node=name, pool=name))


async def held_devices(it: SchedulingCluster) -> Counter[tuple[str, str]]:
    return Counter((each.pool, each.device) for held in await it.all(CLAIMS) for each in results_of(held))


async def check_owners(it: SchedulingCluster) -> None:
    """No two pods that are bound have the same device."""
    bound = {each.metadata.uid for each in await it.all(PODS) if each.spec.node_name}
    owners = Counter(
        (result.pool, result.device)
        for each in await it.all(CLAIMS)
        if bound & {user.uid for user in each.status.reserved_for}
        for result in results_of(each)
    )
    assert [device for device, count in owners.items() if count > 1] == []


class Watched(Fatal):
    """After every binding, each device has one owner."""

    def __init__(self, it: SchedulingCluster) -> None:
        super().__init__(InProcess(it.server))
        self._it = it

    async def handle(self, request: Request) -> Response:
        response = await super().handle(request)
        if request.path.endswith("/binding"):
            await check_owners(self._it)
        return response


@on_loop
async def test_a_claim_that_goes_from_in_flight_to_stored_is_at_no_time_free() -> None:
    plugins: list[DynamicResources] = []

    def make(handle: Handle, args: Any) -> DynamicResources:
        plugins.append(DynamicResources(handle, args))
        return plugins[-1]

    seen: list[bool] = []

    def look(*_: object) -> None:
        """Whether the device can be had, as every allocation would see it."""
        inventory = plugins[0].context.inventory
        seen.append("d0" in inventory.ledger.use((DRIVER, "node-1")).dedicated)

    class Looking(Fatal):
        async def handle(self, request: Request) -> Response:
            look()
            response = await super().handle(request)
            look()
            return response

    async with cluster(GATES) as it:
        await furnish(it)
        transport = Looking(InProcess(it.server))
        async with another_scheduler(it, transport, makers={**MAKERS, "DynamicResources": make}) as scheduler:
            scheduler.informers.of(CLAIMS).subscribe(look)
            await it.create(claim("c"))
            seen.clear()
            await it.create(user("p"))
            assert await it.node_of("p") == "node-1"
    assert seen.index(True) <= 2  # from before the first write on
    assert False not in seen[seen.index(True) :]
    assert len(seen) > 8


@pytest.mark.parametrize("seed", range(3))
def test_pods_that_come_all_at_once_fill_all_devices_and_none_twice(seed: int) -> None:
    async def run() -> None:
        async with scheduling(gates=GATES, seed=seed) as it:
            await furnish(it, nodes=2)
            made = [it.client.create(pod(f"p{number}", claims=[by_template()])) for number in range(20)]
            await asyncio.gather(*made)
            await it.run_for(60)
            assert sorted((await held_devices(it)).values()) == [1] * 16
            placed = [each for each in await it.all(PODS) if each.spec.node_name]
            assert len(placed) == 16
            await asyncio.gather(*(it.delete(PODS, each.metadata.name) for each in placed[:4]))
            await it.run_for(60)
            assert sorted((await held_devices(it)).values()) == [1] * 16
            await check_owners(it)
            assert all(each.spec.node_name for each in await it.all(PODS))

    on_loop(run)()


@pytest.mark.parametrize("names", [("default-scheduler", "default-scheduler"), ("one", "other")])
@pytest.mark.parametrize("seed", range(3))
def test_two_schedulers_give_nothing_twice(seed: int, names: tuple[str, str]) -> None:
    """Of the same pods, or each of its own; over the same devices."""

    async def run() -> None:
        async with cluster(GATES) as it, AsyncExitStack() as stack:
            await it.start(ALL)
            await furnish(it)
            for number in range(12):
                spec = {"schedulerName": names[number % 2]}
                await it.client.create(pod(f"p{number}", claims=[by_template()], spec=spec))
            lines = [Watched(it), Watched(it)]
            for number, (name, line) in enumerate(zip(names, lines, strict=True)):
                chance = seed * 2 + number
                await stack.enter_async_context(another_scheduler(it, line, name=name, seed=chance, settle=False))
            await it.run_for(300)
            assert sorted((await held_devices(it)).values()) == [1] * len(NAMES)
            assert sum(bool(each.spec.node_name) for each in await it.all(PODS)) == len(NAMES)
            bound = [path for line in lines for path in line.created if path.endswith("/binding")]
            assert len(bound) == len(set(bound)) == len(NAMES)

    on_loop(run)()


async def with_template(it: SchedulingCluster) -> dict[str, Any]:
    await furnish(it)
    return pod("p", claims=[by_template("a"), by_template("b")])


async def with_extended_resource(it: SchedulingCluster) -> dict[str, Any]:
    await it.create(gpu_class(), node("node-1"), resource_slice("node-1", *NAMES, pool="node-1"))
    return asking("p", gpu=2)


async def with_cpus(it: SchedulingCluster) -> dict[str, Any]:
    await it.create(device_class("cpu", allocatable.CPU), node("node-1"), allocatable.cores(4))
    await it.create(template("t", deviceClassName="cpu"))
    return pod("p", claims=[by_template()], cpu="1")


Begin = Callable[[SchedulingCluster], Awaitable[dict[str, Any]]]
WAYS: dict[str, tuple[Begin, FeatureGates, int]] = {
    "claims of a template": (with_template, GATES, 5),
    "an extended resource": (with_extended_resource, GATES, 5),
    "devices that take of their node": (with_cpus, allocatable.GATES, 4),
}
"""How a scenario begins, and how many writes there are up to the binding."""
EACH = [(name, number) for name, (_, _, writes) in WAYS.items() for number in range(writes)]
FAULTS: dict[str, Fault] = {
    "conflict": answer(409, "Conflict"),
    "failure": answer(500, "InternalError"),
    "unavailable": answer(503, "ServiceUnavailable"),
    "lost": lost,
    "unsent": unsent,
}


def counts(request: Request) -> bool:
    return request.method in WRITES and "/events" not in request.path


@pytest.mark.parametrize(("way", "number"), EACH)
def test_a_pod_that_is_deleted_before_any_write_of_its_binding_leaves_nothing(way: str, number: int) -> None:
    begin, gates, _ = WAYS[way]

    async def run() -> None:
        async with cluster(gates) as it:
            await it.start(ALL)
            made = await begin(it)

            async def delete() -> None:
                await it.client.delete(PODS, "p", namespace="default", grace=0)

            transport = Unreliable(it, *[well] * number, after(delete), concerns=counts)
            async with another_scheduler(it, transport) as scheduler:
                await it.create(made)
                await it.run_for(30)
                assert transport.met == number + 1
                assert await it.all(PODS) == []
                assert await it.all(CLAIMS) == []
                assert scheduler.cache.pod_count == 0
                await it.create(made)
                await it.run_for(30)
                assert await it.node_of("p") == "node-1"
                await check_owners(it)

    on_loop(run)()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("way", "number"), EACH)
def test_any_write_of_a_binding_may_fail(way: str, number: int, fault: str) -> None:
    begin, gates, _ = WAYS[way]

    async def run() -> None:
        async with cluster(gates) as it:
            await it.start(ALL)
            made = await begin(it)
            transport = Unreliable(it, *[well] * number, FAULTS[fault], concerns=counts)
            async with another_scheduler(it, transport):
                await it.create(made)
                await it.run_for(60)
                assert transport.met == number + 1
                assert await it.node_of("p") == "node-1"
                held = await held_devices(it)
                assert set(held.values()) == {1}
                assert len(held) == (1 if way.startswith("devices") else 2)
                assert all(each.status.reserved_for for each in await it.all(CLAIMS))

    on_loop(run)()
