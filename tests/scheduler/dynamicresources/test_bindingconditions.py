"""Devices that have to be made ready: the pod waits for them, not longer than it may, and gets others if that fails."""

from __future__ import annotations

from typing import Any

from drakit.base.gates import FeatureGates
from drakit.client import CLAIMS, NODES
from drakit.scheduler.config.args import DynamicResourcesArgs
from drakit.scheduler.dynamicresources import DynamicResources
from drakit.scheduler.plugins import MAKERS
from tests.builders.documents import DRIVER
from tests.builders.manifests import claim
from tests.builders.schedulercluster import SchedulingCluster, on_loop
from tests.scheduler.dynamicresources.bindingconditions import attachable, condition, report
from tests.scheduler.dynamicresources.scenes import (
    bare_slice,
    devices_of,
    exactly,
    message_of,
    node,
    scene,
    stored,
    user,
    users_of,
)

WAITING = "waiting for binding conditions for device on node node-1"


async def begin(it: SchedulingCluster, *devices: str) -> None:
    await it.create(bare_slice("s", [attachable(each) for each in devices]), claim(), user("p"))


@on_loop
async def test_the_pod_is_bound_when_all_conditions_of_its_device_are_true() -> None:
    async with scene() as it:
        await begin(it, "d0")
        assert await it.node_of("p") == ""
        assert await devices_of(it) == ["d0"]
        assert await users_of(it) == ["p"]
        assert await it.told("p") == [WAITING]
        await report(it, condition("Attached"))
        assert await it.node_of("p") == ""
        await report(it, condition("Attached"), condition("Booted", "False"))
        assert await it.node_of("p") == ""
        await report(it, condition("Attached"), condition("Booted"))
        assert await it.node_of("p") == "node-1"  # no time has passed: it is told, and does not ask


@on_loop
async def test_a_pod_that_waits_says_where_it_is_going() -> None:
    async with scene() as it:
        await begin(it, "d0")
        assert (await it.pod("p")).status.nominated_node_name == "node-1"


@on_loop
async def test_a_failure_is_told_the_allocation_is_cleared_and_another_is_made() -> None:
    async with scene() as it:
        await begin(it, "d0")
        await report(it, condition("AttachFailed"))
        told = 'running PreBind plugin "DynamicResources": device binding failed: claim=c, reason=R, message="m"'
        assert await message_of(it, "p") == told
        assert await users_of(it) == []
        await it.run_for(2)
        cleared = "0/1 nodes are available: 1 resourceclaim not available on the node. "
        assert any(each.startswith(f"{cleared}deallocation of ResourceClaim completed") for each in await it.told("p"))
        await it.run_for(10)
        assert (await stored(it)).status.devices == ()
        assert await devices_of(it) == ["d0"]
        await report(it, condition("Attached"), condition("Booted"))
        assert await it.node_of("p") == "node-1"


@on_loop
async def test_one_device_that_fails_is_enough_however_the_others_are() -> None:
    async with scene() as it:
        await it.create(bare_slice("s", [attachable("d0"), attachable("d1")]))
        await it.create(claim("c", exactly(count=2)), user("p"))
        await report(it, condition("AttachFailed"), device="d1")
        assert "device binding failed" in await message_of(it, "p")


@on_loop
async def test_after_600_seconds_the_wait_is_over_and_begins_anew() -> None:
    async with scene() as it:
        await begin(it, "d0")
        await it.run_for(599)
        assert await it.told("p") == [WAITING]
        first = await stored(it)
        await it.run_for(1)
        told = 'running PreBind plugin "DynamicResources": device binding timeout: claim=c'
        assert told in await it.told("p")
        await it.run_for(30)
        again = await stored(it)
        assert again.status.allocation is not None
        assert first.status.allocation is not None
        assert again.status.allocation.allocation_timestamp != first.status.allocation.allocation_timestamp
        await report(it, condition("Attached"), condition("Booted"))
        assert await it.node_of("p") == "node-1"


@on_loop
async def test_the_time_to_wait_can_be_set() -> None:
    def make(handle: Any, _: Any) -> DynamicResources:
        return DynamicResources(handle, DynamicResourcesArgs(binding_timeout=60.0))

    async with scene(makers={**MAKERS, "DynamicResources": make}) as it:
        await begin(it, "d0")
        await it.run_for(59)
        assert await it.told("p") == [WAITING]
        await it.run_for(1)
        assert len(await it.told("p", "FailedScheduling")) == 1


@on_loop
async def test_a_scheduler_that_is_started_again_goes_on_waiting_from_where_it_was() -> None:
    async with scene() as it:
        await begin(it, "d0")
        await it.run_for(400)
        await it.kill_scheduler()
        await it.start_scheduler()
        assert await it.node_of("p") == ""
        await it.run_for(199)
        assert await it.told("p", "FailedScheduling") == []
        await it.run_for(1)
        assert len(await it.told("p", "FailedScheduling")) == 1


@on_loop
async def test_a_scheduler_that_is_started_again_binds_what_became_ready_meanwhile() -> None:
    async with scene() as it:
        await begin(it, "d0")
        await it.kill_scheduler()
        await report(it, condition("Attached"), condition("Booted"))
        await it.start_scheduler()
        assert await it.node_of("p") == "node-1"


@on_loop
async def test_a_pod_whose_node_goes_while_it_waits_gets_another_one_and_other_devices() -> None:
    async with scene() as it:
        await begin(it, "d0")
        assert (await it.pod("p")).status.nominated_node_name == "node-1"
        await it.create(node("node-2"), bare_slice("s2", [attachable("e0")], node_name="node-2", pool="pool2"))
        await it.delete(NODES, "node-1")
        told = 'running PreBind plugin "DynamicResources": node "node-1" got deleted in the meantime'
        assert await message_of(it, "p") == told
        assert await users_of(it) == []
        await it.run_for(30)
        assert await devices_of(it) == ["e0"]
        assert await it.node_of("p") == ""
        status = {"driver": DRIVER, "pool": "pool2", "device": "e0"}
        conditions = [condition("Attached"), condition("Booted")]
        await it.set_status(CLAIMS, "c", {"devices": [{**status, "conditions": conditions}]})
        assert await it.node_of("p") == "node-2"


@on_loop
async def test_without_the_gate_nobody_waits() -> None:
    async with scene(gates=FeatureGates.of({"DRADeviceBindingConditions": False})) as it:
        await it.create(bare_slice("s", [{"name": "d0"}]), claim(), user("p"))
        assert await it.node_of("p") == "node-1"
        allocation = (await stored(it)).status.allocation
        assert allocation is not None
        assert allocation.allocation_timestamp is None


@on_loop
async def test_other_pods_are_placed_while_one_waits() -> None:
    async with scene() as it:
        await it.create(bare_slice("t", [{"name": "plain"}], pool="plain"))
        await it.create(bare_slice("s", [attachable("d0")]), claim("c", exactly(count=2)), user("p"))
        assert await it.node_of("p") == ""
        await it.create(bare_slice("u", [{"name": "more"}], pool="more"), claim("other"), user("q", "other"))
        assert await it.node_of("q") == "node-1"


@on_loop
async def test_what_came_of_waiting_is_counted() -> None:
    async with scene() as it:
        await begin(it, "d0")
        await it.run_for(3)
        await report(it, condition("AttachFailed"))
        labels = {"profile": "default-scheduler", "driver": DRIVER}
        total, wait = "allocations_total", "wait_duration_seconds_sum"
        prefix = "scheduler_dra_bindingconditions_"
        assert it.metric(prefix + total, **labels, status="failure") == 1
        assert it.metric(prefix + wait, **labels, status="failure") == 3
        await it.run_for(10)
        await report(it, condition("Attached"), condition("Booted"))
        assert it.metric(prefix + total, **labels, status="success") == 1
