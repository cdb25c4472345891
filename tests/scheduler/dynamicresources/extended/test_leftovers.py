"""Claims that earlier attempts left behind: used again when they will do, removed otherwise."""

from __future__ import annotations

import pytest

from drakit.client import CLASSES, NODES, SLICES
from tests.builders.podmanifests import node, resource_slice
from tests.builders.schedulercluster import SchedulingCluster, on_loop
from tests.scheduler.dynamicresources.extended.faults import written
from tests.scheduler.dynamicresources.extended.stage import (
    CLASS,
    GPU,
    asking,
    assert_placed,
    claims,
    devices_of,
    gpu_class,
    message_of,
    plugin_node,
    requests_of,
    stage,
    start_over,
    the_claim,
)

WRITTEN = [
    "POST resourceclaims",
    "PUT resourceclaims",
    "PUT resourceclaims/status",
    "PATCH pods/status",
    "POST pods/binding",
]
UNDONE = ["PATCH pods/status", "PUT resourceclaims/status", "PUT resourceclaims", "DELETE resourceclaims"]


@pytest.mark.parametrize("last", range(1, 5))
def test_a_claim_that_a_dead_scheduler_left_is_replaced_when_its_node_will_not_do(last: int) -> None:
    @on_loop
    async def run() -> None:
        async with stage("d0", dies_after=last) as it:
            await it.create(asking(gpu=1))
            await it.kill_scheduler()
            before = await the_claim(it)
            await it.create(node("node-2"), resource_slice("slice-2", "e0", pool="pool-2", node="node-2"))
            cordoned = await it.client.get(NODES, "node-1")
            await it.client.patch(cordoned, {"spec": {"unschedulable": True}})
            await it.start_scheduler()
            await it.run_for(30)
            assert await it.node_of("p") == "node-2"
            made = await the_claim(it)
            assert devices_of(made) == ["e0"]
            assert (made.metadata.uid == before.metadata.uid) == (last < 3)
            status = (await it.pod("p")).status.extended_resource_claim_status
            assert status is not None
            assert status.resource_claim_name == made.metadata.name

    run()


async def leave_claim(it: SchedulingCluster) -> str:
    """A claim that is allocated and reserved, of a pod that was not bound."""
    await it.start_scheduler(dies_after=3)
    await it.create(asking(gpu=1))
    await it.kill_scheduler()
    made = await the_claim(it)
    assert devices_of(made) == ["d0"]
    return made.metadata.uid


@on_loop
async def test_a_claim_that_asks_for_another_class_than_now_is_replaced() -> None:
    async with stage("d0", start=False) as it:
        before = await leave_claim(it)
        await it.run_for(5)
        await it.create(gpu_class("newer"))
        await it.start_scheduler()
        assert await it.told("p", "FailedScheduling") == [
            "0/1 nodes are available: 1 cannot schedule extended resource claim. deletion of ResourceClaim completed"
        ]
        await it.run_for(30)
        made = await the_claim(it)
        assert made.metadata.uid != before
        assert requests_of(made) == {"container-0-request-0": ("newer", 1)}
        assert await it.node_of("p") == "node-1"


@on_loop
async def test_a_claim_whose_device_is_gone_is_replaced() -> None:
    async with stage("d0", start=False) as it:
        before = await leave_claim(it)
        found = await it.client.get(SLICES, "slice")
        await it.client.patch(found, {"spec": {"devices": [{"name": "d1"}]}})
        await it.start_scheduler()
        await it.run_for(30)
        made = await the_claim(it)
        assert made.metadata.uid != before
        assert devices_of(made) == ["d1"]
        assert await it.node_of("p") == "node-1"


NEWER = {"attributes": {"age": {"int": 1}}}
TAINTED = {"taints": [{"key": "broken", "effect": "NoSchedule"}]}
SELECTING = [{"cel": {"expression": f'device.attributes["{CLASS}"].age == 1'}}]


@on_loop
async def test_a_claim_whose_device_the_class_does_not_select_any_more_is_replaced() -> None:
    async with stage("d0", start=False) as it:
        before = await leave_claim(it)
        devices = [{"name": "d0", "attributes": {"age": {"int": 9}}}, {"name": "d1", **NEWER}]
        await it.client.patch(await it.client.get(SLICES, "slice"), {"spec": {"devices": devices}})
        await it.client.patch(await it.client.get(CLASSES, CLASS), {"spec": {"selectors": SELECTING}})
        await it.start_scheduler()
        await it.run_for(30)
        made = await the_claim(it)
        assert made.metadata.uid != before
        assert devices_of(made) == ["d1"]
        assert await it.node_of("p") == "node-1"


@on_loop
async def test_a_claim_whose_device_was_tainted_is_replaced() -> None:
    async with stage("d0", start=False) as it:
        before = await leave_claim(it)
        devices = [{"name": "d0", **TAINTED}, {"name": "d1"}]
        await it.client.patch(await it.client.get(SLICES, "slice"), {"spec": {"devices": devices}})
        await it.start_scheduler()
        await it.run_for(30)
        made = await the_claim(it)
        assert made.metadata.uid != before
        assert devices_of(made) == ["d1"]
        assert await it.node_of("p") == "node-1"


@on_loop
async def test_a_claim_that_is_needed_no_more_is_deleted() -> None:
    async with stage("d0", start=False) as it:
        await leave_claim(it)
        found = await it.client.get(NODES, "node-1")
        await it.client.patch_status(found, {"allocatable": {GPU: "1"}})
        await it.start_scheduler()
        await it.run_for(30)
        assert await it.node_of("p") == "node-1"
        assert await claims(it) == []
        assert (await it.pod("p")).status.extended_resource_claim_status is None


@on_loop
async def test_a_claim_of_a_resource_that_no_class_has_any_more_is_deleted() -> None:
    async with stage("d0", start=False) as it:
        await leave_claim(it)
        await it.delete(CLASSES, CLASS)
        await it.start_scheduler()
        await it.run_for(5)
        assert await claims(it) == []
        assert "1 Insufficient example.com/gpu" in await message_of(it)


@on_loop
async def test_a_pod_that_fits_nowhere_keeps_no_devices() -> None:
    async with stage("d0", start=False) as it:
        await leave_claim(it)
        cordoned = await it.client.get(NODES, "node-1")
        cordoned = await it.client.patch(cordoned, {"spec": {"unschedulable": True}})
        await it.start_scheduler()
        await it.run_for(5)
        assert await claims(it) == []
        await it.client.patch(cordoned, {"spec": {"unschedulable": None}})
        await it.run_for(30)
        await assert_placed(it)


@on_loop
async def test_a_deletion_that_fails_is_tried_again() -> None:
    async with stage("d0", start=False) as it:
        await leave_claim(it)
        await it.run_for(5)
        await it.create(gpu_class("newer"))
        line = await start_over(it, delete=2)
        await it.run_for(60)
        assert line.refused == ["DELETE resourceclaims"] * 2
        assert requests_of(await the_claim(it)) == {"container-0-request-0": ("newer", 1)}
        assert await it.node_of("p") == "node-1"


@on_loop
async def test_a_claim_that_cannot_be_taken_back_is_used_by_the_next_attempt() -> None:
    async with stage("d0", start=False) as it:
        line = await start_over(it)
        line.refuse = lambda request: (
            written(request) in ("POST pods/binding", "DELETE resourceclaims") and len(line.refused) < 2
        )
        await it.create(asking(gpu=1))
        await it.run_for(30)
        assert line.refused == ["POST pods/binding", "DELETE resourceclaims"]
        await assert_placed(it)
        assert line.writes.count("POST resourceclaims") == 1


@on_loop
async def test_a_claim_left_by_a_dead_scheduler_counts_for_other_pods() -> None:
    async with stage("d0", start=False) as it:
        await leave_claim(it)
        await it.create(asking("q", gpu=1), plugin_node("plugin", gpu="1"))
        await it.start_scheduler()
        await it.run_for(30)
        placed = {name: await it.node_of(name) for name in "pq"}
        assert placed == {"p": "node-1", "q": "plugin"}


@on_loop
async def test_a_pod_that_ends_up_without_a_claim_does_not_tell_of_one() -> None:
    async with stage("d0", start=False) as it:
        line = await start_over(it)
        line.refuse = lambda request: (
            (written(request) == "POST pods/binding" and not line.refused)
            or (
                written(request) == "PATCH pods/status"
                and "POST pods/binding" in line.refused
                and len(line.refused) < 2
            )
        )
        await it.create(asking(gpu=1))
        assert line.refused == ["POST pods/binding", "PATCH pods/status"]
        assert await claims(it) == []
        assert (await it.pod("p")).status.extended_resource_claim_status is not None
        found = await it.client.get(NODES, "node-1")
        await it.client.patch_status(found, {"allocatable": {GPU: "1"}})
        await it.run_for(30)
        assert await it.node_of("p") == "node-1"
        assert await claims(it) == []
        assert (await it.pod("p")).status.extended_resource_claim_status is None
