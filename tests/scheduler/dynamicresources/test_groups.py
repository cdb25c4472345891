"""Claims of PodGroups: one for all members, reserved for the group."""

from __future__ import annotations

import asyncio

import pytest

from drakit.base.gates import FeatureGates
from drakit.client import CLAIMS, POD_GROUPS, PODS
from tests.builders.manifests import claim, pod_group
from tests.builders.podmanifests import by_template, device_class, node, pod, resource_slice, template
from tests.builders.schedulercluster import cluster, on_loop
from tests.scheduler.dynamicresources.faults import Unreliable, another_scheduler, answer, held, on_claim_status
from tests.scheduler.dynamicresources.scenes import by_name, devices_of, scene, stored, users_of

GATES = FeatureGates.of({"GenericWorkload": True, "DRAWorkloadResourceClaims": True})


def member(name: str, entry: dict[str, str]) -> dict[str, object]:
    return pod(name, claims=[entry], group="pg")


@on_loop
async def test_members_share_the_claim_that_was_made_for_their_group() -> None:
    async with scene("d0", "d1", gates=GATES) as it:
        await it.create(node("node-2"), template(), pod_group("pg", [by_template()]))
        await it.create(*(member(f"p{n}", by_template()) for n in range(3)))
        await it.run_for(5)
        assert {await it.node_of(f"p{n}") for n in range(3)} == {"node-1"}
        [made] = await it.all(CLAIMS)
        assert await users_of(it, made.metadata.name) == ["pg"]
        assert len(await devices_of(it, made.metadata.name)) == 1


@on_loop
async def test_a_claim_that_the_group_names_is_reserved_for_the_group() -> None:
    async with scene("d0", gates=GATES) as it:
        await it.create(claim(), pod_group("pg", [by_name("c")]), member("p", by_name("c")))
        assert await it.node_of("p") == "node-1"
        [reserved] = (await stored(it)).status.reserved_for
        assert (reserved.api_group, reserved.resource, reserved.name) == ("scheduling.k8s.io", "podgroups", "pg")


@on_loop
async def test_a_claim_that_only_the_pod_names_is_reserved_for_the_pod() -> None:
    async with scene("d0", gates=GATES) as it:
        await it.create(claim(), pod_group("pg", [by_name("c", "another")]), member("p", by_name("c")))
        assert await users_of(it) == ["p"]


@on_loop
async def test_without_the_gate_members_reserve_for_themselves() -> None:
    async with scene("d0", gates=FeatureGates.of({"GenericWorkload": True})) as it:
        await it.create(claim(), pod("p", claims=[by_name("c")], group="pg"))
        await it.run_for(5)
        assert await users_of(it) == ["p"]


@on_loop
async def test_a_pod_waits_for_its_group() -> None:
    async with scene("d0", gates=GATES) as it:
        await it.create(claim(), member("p", by_name("c")))
        assert await it.node_of("p") == ""
        await it.create(pod_group("pg", [by_name("c")]))
        await it.run_for(10)
        assert await it.node_of("p") == "node-1"
        assert await users_of(it) == ["pg"]


@on_loop
async def test_the_claim_stays_reserved_when_a_member_goes() -> None:
    async with scene("d0", gates=GATES) as it:
        await it.create(claim(), pod_group("pg", [by_name("c")]))
        await it.create(member("p", by_name("c")), member("q", by_name("c")))
        await it.run_for(5)
        await it.delete(PODS, "p")
        await it.delete(PODS, "q")
        assert await users_of(it) == ["pg"]
        assert await devices_of(it) == ["d0"]
        await it.delete(POD_GROUPS, "pg")
        await it.run_for(5)
        assert await users_of(it) == []


@pytest.mark.parametrize("failures", [1, 2, 3])
def test_a_write_that_fails_for_one_member_is_made_good_by_the_others(failures: int) -> None:
    async def run() -> None:
        async with cluster(GATES) as it:
            await it.create(device_class(), node("node-1"), resource_slice("s", "d0"))
            transport = Unreliable(it, *[answer(500, "InternalError")] * failures, concerns=on_claim_status)
            async with another_scheduler(it, transport):
                await it.create(claim(), pod_group("pg", [by_name("c")]))
                for number in range(3):
                    await it.client.create(member(f"p{number}", by_name("c")))
                await it.run_for(20)
                assert [await it.node_of(f"p{n}") for n in range(3)] == ["node-1"] * 3
                assert await users_of(it) == ["pg"]
                assert await devices_of(it) == ["d0"]

    on_loop(run)()


@on_loop
async def test_an_allocation_in_flight_is_for_the_members_of_its_own_group() -> None:
    async with cluster(GATES) as it:
        await it.create(device_class(), node("node-1"), resource_slice("s", "d0"))
        release = asyncio.Event()
        async with another_scheduler(it, Unreliable(it, held(release), concerns=on_claim_status)):
            groups = [pod_group(name, [by_name("c")]) for name in ("pg", "other")]
            await it.create(claim(), *groups, member("p", by_name("c")))
            await it.create(pod("q", claims=[by_name("c")], group="other"))
            condition = await it.condition("q")
            assert condition is not None
            assert "resource claim default/c is in the process of being allocated" in condition.message
            release.set()
            await it.run_for(5)
            assert [await it.node_of(each) for each in "pq"] == ["node-1", "node-1"]
            assert await users_of(it) == ["pg", "other"]
