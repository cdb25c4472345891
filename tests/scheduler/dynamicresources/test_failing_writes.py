"""Whatever goes wrong while claims are written: the pod is tried again, and no device is lost or given twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from drakit.api.exchange import Request, Response
from drakit.client import CLAIMS, PODS
from tests.builders.manifests import claim
from tests.builders.podmanifests import device_class, node, resource_slice
from tests.builders.schedulercluster import SchedulingCluster, cluster, on_loop
from tests.scheduler.dynamicresources.faults import (
    Fault,
    Unreliable,
    after,
    another_scheduler,
    answer,
    lost,
    on_claim_status,
    on_claims,
    unsent,
    well,
)
from tests.scheduler.dynamicresources.scenes import GATES, devices_of, message_of, refused, stored, user, users_of

FAULTS: dict[str, Fault] = {
    "conflict": answer(409, "Conflict"),
    "failure": answer(500, "InternalError"),
    "forbidden": answer(403, "Forbidden"),
    "unavailable": answer(503, "ServiceUnavailable"),
    "invalid": answer(422, "Invalid"),
    "lost": lost,
    "unsent": unsent,
}


async def furnish(it: SchedulingCluster, *devices: str) -> None:
    await it.create(device_class(), node("node-1"), resource_slice("slice", *devices))


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("number", [0, 1])
def test_a_write_that_fails_is_made_good(number: int, fault: str) -> None:
    """Number 0 is the finalizer, number 1 allocation and reservation."""

    async def run() -> None:
        async with cluster(GATES) as it:
            await furnish(it, "d0")
            transport = Unreliable(it, *[well] * number, FAULTS[fault], concerns=on_claims)
            async with another_scheduler(it, transport):
                await it.create(claim(), user("p"))
                await it.run_for(5)
                assert transport.met == number + 1
                assert await it.node_of("p") == "node-1"
                assert await devices_of(it) == ["d0"]
                assert await users_of(it) == ["p"]

    on_loop(run)()


@on_loop
async def test_a_conflict_is_resolved_without_another_attempt() -> None:
    async with cluster(GATES) as it:
        await furnish(it, "d0")

        async def label() -> None:
            await it.client.patch(await stored(it), {"metadata": {"labels": {"a": "b"}}})

        transport = Unreliable(it, after(label), concerns=on_claims)
        async with another_scheduler(it, transport):
            await it.create(claim(), user("p"))
            assert await it.node_of("p") == "node-1"
            assert await it.told("p", "FailedScheduling") == []


@on_loop
async def test_a_write_whose_answer_was_lost_is_recognised_without_another_attempt() -> None:
    async with cluster(GATES) as it:
        await furnish(it, "d0")
        async with another_scheduler(it, Unreliable(it, lost, concerns=on_claim_status)):
            await it.create(claim(), user("p"))
            assert await it.node_of("p") == "node-1"
            assert await it.told("p", "FailedScheduling") == []


def refused_after(until: asyncio.Event) -> Fault:
    """The answer takes its time, and is a no."""

    async def fault(request: Request, go: Callable[[], Awaitable[Response]]) -> Response:
        await until.wait()
        return await answer(403, "Forbidden")(request, go)

    return fault


@on_loop
async def test_devices_of_a_write_that_failed_go_to_who_waits_for_them() -> None:
    """The first pod cannot be bound, ever; the second gets the device when the first gave it back."""
    async with cluster(GATES) as it:
        await furnish(it, "d0")
        until = asyncio.Event()
        never = [refused_after(until)] * 50
        transport = Unreliable(it, *never, concerns=lambda request: "/resourceclaims/first" in request.path)
        async with another_scheduler(it, transport):
            await it.create(claim("first"), claim("second"), user("p", "first"), user("q", "second"))
            assert (await message_of(it, "q")).startswith(refused("1 cannot allocate all claims"))
            until.set()
            await it.run_for(5)
            assert await it.node_of("q") == "node-1"
            assert await devices_of(it, "second") == ["d0"]
            assert await devices_of(it, "first") == []


@on_loop
async def test_a_pod_that_shares_the_claim_is_woken_when_its_allocation_was_given_up() -> None:
    async with cluster(GATES) as it:
        await furnish(it, "d0")
        until = asyncio.Event()
        transport = Unreliable(it, refused_after(until), concerns=on_claim_status)
        async with another_scheduler(it, transport):
            await it.create(claim(), user("p"), user("q"))
            assert "resource claim default/c is in the process of being allocated" in await message_of(it, "q")
            until.set()
            await it.settle()
            assert await it.node_of("q") == "node-1"  # without backoff: it only waited for the claim
            await it.run_for(3)
            assert sorted(await users_of(it)) == ["p", "q"]


@on_loop
async def test_a_claim_that_another_scheduler_allocated_is_told_of_and_used() -> None:
    async with cluster(GATES) as it:
        await furnish(it, "d0", "d1")

        async def steal() -> None:
            result = {"request": "r", "driver": "gpu.example.com", "pool": "pool", "device": "d1"}
            await it.client.patch_status(await stored(it), {"allocation": {"devices": {"results": [result]}}})

        transport = Unreliable(it, after(steal), concerns=on_claim_status)
        async with another_scheduler(it, transport):
            await it.create(claim(), user("p"))
            words = "claim default/c got allocated elsewhere in the meantime"
            assert await message_of(it, "p") == f'running PreBind plugin "DynamicResources": {words}'
            await it.run_for(3)
            assert await it.node_of("p") == "node-1"
            assert await devices_of(it) == ["d1"]


@on_loop
async def test_a_claim_that_is_deleted_meanwhile_is_told_of() -> None:
    async with cluster(GATES) as it:
        await furnish(it, "d0")

        async def delete() -> None:
            await it.client.delete(CLAIMS, "c", namespace="default")

        transport = Unreliable(it, after(delete), concerns=on_claim_status)
        async with another_scheduler(it, transport):
            await it.create(claim(), user("p"))
            words = "claim default/c got deleted in the meantime"
            assert await message_of(it, "p") == f'running PreBind plugin "DynamicResources": {words}'


@on_loop
async def test_a_claim_that_is_deallocated_before_the_answer_comes_is_told_of() -> None:
    async with cluster(GATES) as it:
        await furnish(it, "d0")

        async def deallocated(request: Request, go: Callable[[], Awaitable[Response]]) -> Response:
            response = await go()
            await it.client.patch_status(await stored(it), {"allocation": None, "reservedFor": None})
            for _ in range(60):
                await asyncio.sleep(0)
            return response

        async with another_scheduler(it, Unreliable(it, deallocated, concerns=on_claim_status)):
            await it.create(claim(), user("p"))
            assert await it.node_of("p") == ""
            words = "claim default/c got deallocated elsewhere in the meantime"
            assert await message_of(it, "p") == f'running PreBind plugin "DynamicResources": {words}'
            await it.run_for(5)
            assert await it.node_of("p") == "node-1"
            assert await users_of(it) == ["p"]
            assert await devices_of(it) == ["d0"]


@on_loop
async def test_a_claim_that_is_replaced_by_another_of_its_name_is_not_taken_for_it() -> None:
    async with cluster(GATES) as it:
        await furnish(it, "d0")

        async def replace() -> None:
            await it.client.delete(CLAIMS, "c", namespace="default")
            await it.client.create(claim())

        transport = Unreliable(it, after(replace), concerns=on_claims)
        async with another_scheduler(it, transport):
            await it.create(claim(), user("p"))
            assert (await message_of(it, "p")).endswith("claim default/c got deleted in the meantime")
            await it.run_for(3)
            assert await it.node_of("p") == "node-1"


@on_loop
async def test_a_pod_that_is_deleted_before_it_is_bound_leaves_nothing_behind() -> None:
    async with cluster(GATES) as it:
        await furnish(it, "d0")

        async def delete() -> None:
            await it.client.delete(PODS, "p", namespace="default", grace=0)

        transport = Unreliable(it, well, after(delete), concerns=on_claims)
        async with another_scheduler(it, transport) as scheduler:
            await it.create(claim("a"), user("p", "a"))
            assert await users_of(it, "a") == []
            await it.create(claim("b"), user("q", "b"))
            await it.run_for(10)
            assert await it.node_of("q") == ""  # the claim of the pod that is gone is allocated: a controller frees it
            assert await devices_of(it, "a") == ["d0"]
            assert scheduler.queue.pending()["unschedulable"] == 1


@on_loop
async def test_a_pod_that_is_over_gets_no_reservation() -> None:
    async with cluster(GATES) as it:
        await furnish(it, "d0")

        async def end() -> None:
            await it.client.patch_status(await it.client.get(PODS, "p", namespace="default"), {"phase": "Failed"})

        transport = Unreliable(it, after(end), concerns=on_claims)
        async with another_scheduler(it, transport):
            await it.create(claim(), user("p"))
            await it.run_for(5)
            assert await users_of(it) == []
            assert await it.node_of("p") == ""
