"""Extended resources together with what else devices can be: to be made ready, chosen, of a gang, part of a budget."""

from __future__ import annotations

import pytest

from drakit.api import to_plain
from drakit.base.gates import FeatureGates
from drakit.client import CLAIMS, PODS
from tests.builders.manifests import claim, pod_group
from tests.builders.podmanifests import node, pod, resource_slice
from tests.builders.schedulercluster import SchedulingCluster, on_loop
from tests.scheduler.dynamicresources import scenes
from tests.scheduler.dynamicresources.bindingconditions import attachable, condition
from tests.scheduler.dynamicresources.extended.stage import (
    GATES,
    GPU,
    Plain,
    asking,
    claims,
    devices_of,
    message_of,
    stage,
    the_claim,
)
from tests.scheduler.dynamicresources.scenes import bare_slice, first_of

READY = (condition("Attached"), condition("Booted"))
GANGS = FeatureGates.of({"GenericWorkload": True, "GangScheduling": True})


async def report(it: SchedulingCluster, *conditions: Plain) -> None:
    made = await the_claim(it)
    [device] = devices_of(made)
    status = {"driver": "gpu.example.com", "pool": "pool", "device": device, "conditions": list(conditions)}
    await it.set_status(CLAIMS, made.metadata.name, {"devices": [status]})


async def begin(it: SchedulingCluster) -> str:
    """A pod that waits for its device; the uid of its claim."""
    await it.create(bare_slice("s", [attachable("d0")]), asking(gpu=1))
    assert await it.node_of("p") == ""
    return (await the_claim(it)).metadata.uid


@pytest.mark.parametrize("restarted", [False, True])
def test_a_pod_waits_for_the_devices_of_its_special_claim_to_be_made_ready(restarted: bool) -> None:
    async def run() -> None:
        async with stage() as it:
            before = await begin(it)
            if restarted:
                await it.kill_scheduler()
                await it.start_scheduler()
            assert await it.node_of("p") == ""
            await report(it, *READY)
            assert await it.node_of("p") == "node-1"
            assert (await the_claim(it)).metadata.uid == before

    on_loop(run)()


@pytest.mark.parametrize("restarted", [False, True])
def test_a_special_claim_whose_device_cannot_be_made_ready_is_replaced(restarted: bool) -> None:
    async def run() -> None:
        async with stage() as it:
            before = await begin(it)
            if restarted:
                await it.kill_scheduler()
            await report(it, condition("AttachFailed"))
            if restarted:
                await it.start_scheduler()
            await it.run_for(30)
            assert (await the_claim(it)).metadata.uid != before
            await report(it, *READY)
            assert await it.node_of("p") == "node-1"

    on_loop(run)()


@on_loop
async def test_a_special_claim_whose_device_is_not_ready_in_time_is_replaced() -> None:
    async with stage() as it:
        before = await begin(it)
        await it.run_for(605)
        assert any("device binding timeout: claim=p-extended-resources-" in each for each in await it.told("p"))
        await it.run_for(30)
        assert (await the_claim(it)).metadata.uid != before


@on_loop
async def test_a_node_where_a_better_alternative_and_the_extended_resource_fit_is_preferred() -> None:
    async with stage("d0", "d1", "d2", gates=GATES) as it:
        choosing = asking(gpu=1)
        choosing["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimName": "c"}]
        choosing["spec"]["containers"][0]["resources"]["claims"] = [{"name": "c"}]
        more = resource_slice("more", "e0", "e1", "e2", "e3", node="node-2", pool="more")
        await it.create(node("node-2"), more, claim("c", first_of("r", three=3, two=2)), choosing)
        assert await it.node_of("p") == "node-2"
        assert await scenes.devices_of(it) == ["e0", "e1", "e2"]
        assert devices_of(await the_claim(it)) == ["e3"]


def member(name: str) -> Plain:
    made = asking(name, gpu=1)
    made["spec"]["schedulingGroup"] = {"podGroupName": "pg"}
    return made


@on_loop
async def test_a_gang_gets_all_its_extended_resources_or_none() -> None:
    async with stage("d0", gates=GANGS) as it:
        group = pod_group("pg", [])
        group["spec"]["schedulingPolicy"] = {"gang": {"minCount": 2}}
        await it.create(group, member("p"), member("q"))
        await it.run_for(5)
        assert [await it.node_of(each) for each in "pq"] == ["", ""]
        assert await claims(it) == []
        await it.create(resource_slice("more", "e0", pool="more"))
        await it.run_for(15)
        assert [await it.node_of(each) for each in "pq"] == ["node-1", "node-1"]
        assert sorted(each for made in await claims(it) for each in devices_of(made)) == ["d0", "e0"]


@pytest.mark.parametrize(("budget", "fits"), [("2500m", True), ("2499m", False)])
def test_the_budget_of_a_pod_covers_what_devices_behind_a_resource_name_take(budget: str, fits: bool) -> None:
    async def run() -> None:
        async with stage(gates=FeatureGates.of({"DRANodeAllocatableResources": True})) as it:
            mapping = {"cpu": {"allocationMultiplier": "2"}}
            await it.create(bare_slice("s", [{"name": "d0", "nodeAllocatableResourceMappings": mapping}]))
            limited = asking(gpu=1)
            limited["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "500m", GPU: "1"}
            limited["spec"]["resources"] = {"requests": {"cpu": budget}}
            await it.create(limited)
            assert await it.node_of("p") == ("node-1" if fits else "")
            if fits:
                [taken] = (await it.pod("p")).status.node_allocatable_resource_claim_statuses
                name = (await the_claim(it)).metadata.name
                assert to_plain(taken) == {
                    "resourceClaimName": name,
                    "containers": ["ctr"],
                    "resources": {"cpu": "2"},
                }
            else:
                assert "pod level request for cpu is insufficient to cover" in await message_of(it)
                assert await claims(it) == []

    on_loop(run)()


@on_loop
async def test_a_pod_without_own_claims_is_woken_by_room_for_what_its_devices_take() -> None:
    async with stage(gates=FeatureGates.of({"DRANodeAllocatableResources": True})) as it:
        mapping = {"cpu": {"allocationMultiplier": "5"}}
        await it.create(bare_slice("s", [{"name": "d0", "nodeAllocatableResourceMappings": mapping}]))
        await it.create(pod("plain", cpu="4"), asking(gpu=1))
        assert (await message_of(it)).startswith("0/1 nodes are available: 1 Insufficient cpu.")
        await it.delete(PODS, "plain")
        await it.run_for(15)
        assert await it.node_of("p") == "node-1"
