"""Questions about pools, and their answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from drakit.client import CLAIMS, NAMESPACES, POOL_STATUS_REQUESTS
from drakit.controllers.poolstatus import PoolStatusController
from tests.builders.cluster import Cluster, cluster, on_loop
from tests.builders.documents import DRIVER
from tests.builders.manifests import allocation, claim, resource_slice
from tests.controllers.eviction import rule
from tests.controllers.poolstatus import question

MAKERS = (PoolStatusController,)


@asynccontextmanager
async def running() -> AsyncIterator[Cluster]:
    async with cluster() as made:
        await made.start(MAKERS)
        yield made


async def answer(it: Cluster, **spec: Any) -> Any:
    await it.create(question(**spec))
    status = (await it.find(POOL_STATUS_REQUESTS, "q")).status
    assert status is not None
    return status


@on_loop
async def test_a_driver_that_nobody_knows_has_no_pools() -> None:
    async with running() as it:
        status = await answer(it, driver="nobody.example.com")
        assert (status.pool_count, status.pools) == (0, ())
        [told] = status.conditions
        assert (told.type, told.status, told.reason, told.message) == (
            "Complete", "True", "CalculationComplete", "Calculated status for 0 pools",
        )  # fmt: skip


@on_loop
async def test_devices_are_counted_as_allocated_available_and_unavailable() -> None:
    async with running() as it:
        labels = {"resource.kubernetes.io/admin-access": "true"}
        await it.client.patch_named(NAMESPACES, "default", {"metadata": {"labels": labels}})
        await it.create(resource_slice("s", "d0", "d1", "d2", "d3", generation=2))
        await it.create(resource_slice("old", "d0", "d9", generation=1), claim("c"), claim("admin"))
        await it.set_status(CLAIMS, "c", {"allocation": allocation("d0")})
        await it.set_status(CLAIMS, "admin", {"allocation": allocation("d3", adminAccess=True)})
        await it.create(rule("NoSchedule", device="d1"), rule("None", name="other", device="d2"))
        [pool] = (await answer(it)).pools
        assert (pool.driver, pool.pool_name, pool.generation, pool.node_name) == (DRIVER, "pool", 2, "node-1")
        assert pool.resource_slice_count == 1
        assert (pool.total_devices, pool.allocated_devices) == (4, 1)
        assert (pool.available_devices, pool.unavailable_devices) == (2, 1)
        assert pool.validation_error is None


@on_loop
async def test_a_device_whose_counters_are_drawn_by_others_is_not_available() -> None:
    async with running() as it:
        takes = [{"counterSet": "set", "counters": {"memory": {"value": "40Gi"}}}]
        whole = [{"counterSet": "set", "counters": {"memory": {"value": "80Gi"}}}]
        listed = [{"name": "whole", "consumesCounters": whole}, {"name": "half-0", "consumesCounters": takes}]
        made = resource_slice("s", generation=1)
        made["spec"]["pool"]["resourceSliceCount"] = 2
        made["spec"]["devices"] = [*listed, {"name": "half-1", "consumesCounters": takes}]
        counters = resource_slice("t", generation=1)
        counters["spec"]["pool"]["resourceSliceCount"] = 2
        del counters["spec"]["devices"]
        counters["spec"]["sharedCounters"] = [{"name": "set", "counters": {"memory": {"value": "80Gi"}}}]
        await it.create(made, counters, claim("c"))
        await it.set_status(CLAIMS, "c", {"allocation": allocation("half-0")})
        [pool] = (await answer(it)).pools
        assert (pool.total_devices, pool.allocated_devices) == (3, 1)
        assert (pool.available_devices, pool.unavailable_devices) == (1, 1)


@on_loop
async def test_a_pool_that_is_not_whole_has_an_error_and_no_counts() -> None:
    async with running() as it:
        await it.create(resource_slice("s", "d0", count=2))
        status = await answer(it)
        [pool] = status.pools
        assert pool.validation_error == f"pool {DRIVER}/pool is incomplete: observed 1/2 slices at generation 1"
        assert pool.total_devices is None
        assert pool.available_devices is None
        assert status.conditions[0].message == "Calculated status for 1 pools (1 incomplete)"


@on_loop
async def test_an_error_that_is_too_long_is_cut_and_the_other_pools_are_told() -> None:
    async with running() as it:
        long = [resource_slice(f"s-{count}", "d0", pool="a", count=10**12 + count) for count in range(1, 30)]
        await it.create(*long, resource_slice("s", "d0", pool="b"))
        wrong, right = (await answer(it)).pools
        assert len(wrong.validation_error) == 256
        assert (right.validation_error, right.total_devices) == (None, 1)


@on_loop
async def test_pools_come_in_order_up_to_the_limit_and_all_are_counted() -> None:
    async with running() as it:
        for name in ("c", "a", "b"):
            await it.create(resource_slice(name, "d0", pool=f"pool-{name}", node=f"node-{name}"))
        status = await answer(it, limit=2)
        assert [pool.pool_name for pool in status.pools] == ["pool-a", "pool-b"]
        assert status.pool_count == 3


@on_loop
async def test_without_a_limit_a_hundred_pools_are_told() -> None:
    async with running() as it:
        await it.create(*(resource_slice(f"s-{n:03}", "d0", pool=f"pool-{n:03}") for n in range(102)))
        status = await answer(it)
        assert (len(status.pools), status.pools[-1].pool_name, status.pool_count) == (100, "pool-099", 102)


@on_loop
async def test_one_pool_may_be_asked_for() -> None:
    async with running() as it:
        for name in ("a", "b"):
            await it.create(resource_slice(name, "d0", pool=f"pool-{name}"))
        status = await answer(it, poolName="pool-b")
        assert [pool.pool_name for pool in status.pools] == ["pool-b"]
        assert status.pool_count == 1


@on_loop
async def test_an_answer_that_the_server_does_not_take_is_a_failure() -> None:
    async with running() as it:
        await it.create(resource_slice("s", "d0", generation=0))
        status = await answer(it)
        [told] = status.conditions
        assert (told.type, told.status) == ("Failed", "True")
        assert "generation" in told.message
        await it.run_for(3605)
        assert await it.find(POOL_STATUS_REQUESTS, "q") is None


@on_loop
async def test_an_answer_is_given_once() -> None:
    async with running() as it:
        first = await answer(it)
        await it.create(resource_slice("s", "d0"))
        await it.run_for(60)
        assert (await it.find(POOL_STATUS_REQUESTS, "q")).status == first


@on_loop
async def test_a_request_is_deleted_an_hour_after_its_answer_also_over_a_restart() -> None:
    async with running() as it:
        await answer(it)
        await it.run_for(1800)
        await it.kill()
        await it.start(MAKERS)
        await it.run_for(1795)
        assert await it.find(POOL_STATUS_REQUESTS, "q") is not None
        await it.run_for(10)
        assert await it.find(POOL_STATUS_REQUESTS, "q") is None
