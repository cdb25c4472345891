"""What a pod waits for, and what changes under its feet."""

from __future__ import annotations

from drakit.base.gates import FeatureGates
from drakit.client import CLAIMS, CLASSES, NODES, PODS
from tests.builders.podmanifests import by_name, claim, pod, resource_slice
from tests.builders.schedulercluster import on_loop
from tests.scheduler.dynamicresources.extended.stage import (
    CLASS,
    GPU,
    IMPLICIT,
    asking,
    claims,
    devices_of,
    gpu_class,
    message_of,
    plugin_node,
    stage,
    the_claim,
)

LIMIT = "claim default/<extended-resources>: number of requested devices 33 exceeds the claim limit of 32"


@on_loop
async def test_the_claim_goes_with_its_pod_and_its_devices_are_free_again() -> None:
    async with stage("d0") as it:
        await it.create(asking("p", gpu=1), asking("q", gpu=1))
        assert await it.node_of("q") == ""
        await it.delete(PODS, "p")
        await it.run_for(30)
        assert await it.node_of("q") == "node-1"
        assert devices_of(await the_claim(it)) == ["d0"]


@on_loop
async def test_many_pods_at_once_never_share_a_device() -> None:
    devices = [f"d{number}" for number in range(12)]
    async with stage(*devices) as it:
        for number in range(16):
            await it.client.create(asking(f"p{number}", gpu=1))
        await it.run_for(20)
        given = [device for each in await claims(it) for device in devices_of(each)]
        assert sorted(given) == sorted(devices)
        placed = [await it.node_of(f"p{number}") for number in range(16)]
        assert (placed.count("node-1"), placed.count("")) == (12, 4)


@on_loop
async def test_a_gate_that_is_off_leaves_the_resource_to_the_nodes() -> None:
    async with stage("d0", gates=FeatureGates.only(FeatureGates.defaults().on - {"DRAExtendedResource"})) as it:
        await it.create(plugin_node("plugin", gpu="1"))
        await it.create(asking("p", gpu=1), asking("q", implicit=1))
        assert await it.node_of("p") == "plugin"
        assert f"2 Insufficient {IMPLICIT}" in await message_of(it, "q")
        assert await claims(it) == []


@on_loop
async def test_what_pods_have_stays_theirs_while_the_gate_is_off_and_after() -> None:
    off = FeatureGates.only(FeatureGates.defaults().on - {"DRAExtendedResource"})
    async with stage("d0", "d1") as it:
        await it.create(asking("p", gpu=1))
        await it.kill_scheduler()
        await it.start_scheduler(gates=off)
        await it.create(asking("q", gpu=1), claim("c"), pod("r", claims=[by_name("c")]))
        assert "Insufficient example.com/gpu" in await message_of(it, "q")
        assert devices_of(await it.find(CLAIMS, "c")) == ["d1"]
        await it.delete(PODS, "r")
        await it.run_for(5)
        await it.kill_scheduler()
        await it.start_scheduler()
        await it.run_for(30)
        assert await it.node_of("q") == "node-1"
        assert sorted(device for each in await claims(it) for device in devices_of(each)) == ["d0", "d1"]


@on_loop
async def test_a_pod_waits_for_a_class_to_be_made() -> None:
    async with stage("d0") as it:
        await it.delete(CLASSES, CLASS)
        await it.create(asking(gpu=1))
        assert "1 Insufficient example.com/gpu" in await message_of(it)
        await it.create(gpu_class())
        await it.run_for(2)
        assert await it.node_of("p") == "node-1"


@on_loop
async def test_a_pod_waits_for_a_class_to_take_the_name() -> None:
    async with stage("d0") as it:
        found = await it.client.get(CLASSES, CLASS)
        found = await it.client.patch(found, {"spec": {"extendedResourceName": None}})
        await it.create(asking(gpu=1))
        assert await it.node_of("p") == ""
        await it.client.patch(found, {"spec": {"extendedResourceName": GPU}})
        await it.run_for(2)
        assert await it.node_of("p") == "node-1"


@on_loop
async def test_a_pod_waits_for_devices_to_be_published() -> None:
    async with stage() as it:
        await it.create(asking(gpu=1))
        assert "1 cannot allocate all claims" in await message_of(it)
        await it.create(resource_slice("slice", "d0"))
        await it.run_for(2)
        assert await it.node_of("p") == "node-1"


@on_loop
async def test_a_pod_waits_for_a_device_plugin_to_come() -> None:
    async with stage() as it:
        await it.create(asking(gpu=1))
        found = await it.client.get(NODES, "node-1")
        await it.client.patch_status(found, {"allocatable": {GPU: "1"}})
        await it.run_for(2)
        assert await it.node_of("p") == "node-1"
        assert await claims(it) == []


@on_loop
async def test_a_pod_waits_for_a_device_plugin_to_leave_the_node_to_devices() -> None:
    async with stage("d0") as it:
        found = await it.client.get(NODES, "node-1")
        found = await it.client.patch_status(found, {"allocatable": {GPU: "1"}})
        await it.create(asking("p", gpu=1), asking("q", gpu=1))
        assert await it.node_of("q") == ""
        await it.client.patch_status(found, {"allocatable": {GPU: None}})
        await it.run_for(2)
        assert await it.node_of("q") == "node-1"
        assert devices_of(await the_claim(it)) == ["d0"]
