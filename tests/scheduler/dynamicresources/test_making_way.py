"""An allocated claim that nobody uses and that keeps its pod from every node is deallocated."""

from __future__ import annotations

from drakit.base.gates import FeatureGates
from drakit.client import CLAIMS, NODES, POD_GROUPS, PODS, SLICES
from tests.builders.manifests import allocation, claim, consumer, pod_group
from tests.builders.podmanifests import node, resource_slice
from tests.builders.schedulercluster import SchedulingCluster, on_loop
from tests.scheduler.dynamicresources.scenes import (
    NOT_AVAILABLE,
    by_name,
    devices_of,
    pod,
    refused,
    scene,
    user,
    users_of,
)

WORKLOADS = FeatureGates.of({"GenericWorkload": True, "DRAWorkloadResourceClaims": True})


async def allocate(it: SchedulingCluster, name: str, device: str, node_name: str, *users: dict[str, str]) -> None:
    status = {"allocation": allocation(device, node_name), "reservedFor": list(users)}
    await it.set_status(CLAIMS, name, status)


@on_loop
async def test_a_claim_for_another_node_is_deallocated_when_nobody_uses_it() -> None:
    async with scene("d0") as it:
        await it.create(claim())
        await allocate(it, "c", "gone", "no-such-node")
        await it.create(user("p"))
        told = refused(f"1 {NOT_AVAILABLE}", "deallocation of ResourceClaim completed")
        assert any(each.startswith(told) for each in await it.told("p"))
        await it.run_for(3)
        assert await it.node_of("p") == "node-1"
        assert await devices_of(it) == ["d0"]


@on_loop
async def test_a_claim_that_is_in_use_is_left_alone() -> None:
    async with scene("d0") as it:
        await it.create(claim())
        other = {"apiGroup": "example.com", "resource": "jobs", "name": "x", "uid": "x"}
        await allocate(it, "c", "gone", "no-such-node", other)
        await it.create(user("p"))
        await it.run_for(30)
        assert (await it.told("p", "FailedScheduling"))[0].startswith(refused(f"1 {NOT_AVAILABLE}"))
        assert await devices_of(it) == ["gone"]


@on_loop
async def test_a_claim_that_only_this_pod_uses_is_deallocated() -> None:
    """A scheduler died after it had reserved the claim; then the node went away."""
    async with scene("d0") as it:
        await it.kill_scheduler()
        await it.create(claim())
        made = await it.create(user("p"))
        await allocate(
            it, "c", "gone", "no-such-node", {"resource": "pods", "name": "p", "uid": made.view.metadata.uid}
        )
        await it.start_scheduler()
        await it.run_for(3)
        assert await it.node_of("p") == "node-1"
        assert await users_of(it) == ["p"]


@on_loop
async def test_a_claim_that_is_not_the_reason_is_left_alone() -> None:
    """No node has the other device either: deallocating would not help."""
    async with scene("d0") as it:
        await it.create(node("node-2"), claim("a"), claim("b"))
        await allocate(it, "a", "d0", "node-1")
        await it.delete(SLICES, "slice")
        await it.create(pod("p", claims=[by_name("a", "x"), by_name("b", "y")]))
        await it.run_for(10)
        assert (await it.told("p", "FailedScheduling"))[0].startswith(refused("2 cannot allocate all claims", nodes=2))
        assert await devices_of(it, "a") == ["d0"]


@on_loop
async def test_claims_are_deallocated_one_by_one_until_the_pod_fits() -> None:
    async with scene() as it:
        await it.create(resource_slice("s", "d0", "d1", node="node-1"), claim("a"), claim("b"))
        await allocate(it, "a", "gone", "no-such-node")
        await allocate(it, "b", "lost", "no-such-node")
        await it.create(pod("p", claims=[by_name("a", "x"), by_name("b", "y")]))
        await it.run_for(10)
        assert await it.node_of("p") == "node-1"
        assert sorted(await devices_of(it, "a") + await devices_of(it, "b")) == ["d0", "d1"]


@on_loop
async def test_a_group_of_which_nobody_runs_lets_go_of_its_claim() -> None:
    async with scene("d0", gates=WORKLOADS) as it:
        await it.kill_scheduler()
        await it.create(claim(), pod_group("pg", [by_name("c")]))
        group = await it.find(POD_GROUPS, "pg")
        await allocate(it, "c", "gone", "no-such-node", consumer(group))
        await it.start_scheduler()
        await it.create(pod("p", claims=[by_name("c")], group="pg"))
        told = refused(f"1 {NOT_AVAILABLE}", "ResourceClaim unreserved for PodGroup")
        assert any(each.startswith(told) for each in await it.told("p"))
        await it.run_for(10)
        assert await it.node_of("p") == "node-1"
        assert await devices_of(it) == ["d0"]


@on_loop
async def test_a_group_of_which_somebody_is_on_a_node_that_was_deleted_keeps_its_claim() -> None:
    async with scene("d0", gates=WORKLOADS) as it:
        await it.create(claim(), pod_group("pg", [by_name("c")]))
        await it.create(pod("p", claims=[by_name("c")], group="pg"))
        assert await it.node_of("p") == "node-1"
        await it.create(node("node-2"), resource_slice("s", "d1", node="node-2"))
        await it.delete(NODES, "node-1")
        await it.create(pod("q", claims=[by_name("c")], group="pg"))
        await it.run_for(10)
        assert await it.node_of("q") == ""
        assert (await users_of(it), await devices_of(it)) == (["pg"], ["d0"])


@on_loop
async def test_a_group_of_which_somebody_runs_keeps_its_claim() -> None:
    async with scene("d0", gates=WORKLOADS) as it:
        await it.create(node("node-2", zone="b"), claim(), pod_group("pg", [by_name("c")]))
        await it.create(pod("p", claims=[by_name("c")], group="pg"))
        assert await it.node_of("p") == "node-1"
        await it.create(pod("q", claims=[by_name("c")], group="pg", spec={"nodeSelector": {"zone": "b"}}))
        await it.run_for(10)
        assert await it.node_of("q") == ""
        assert await users_of(it) == ["pg"]
        await it.delete(PODS, "p")
        await it.run_for(400)  # nobody runs any more: it may be allocated anew, where the pod that waits can go
        assert await devices_of(it) == []
        assert await users_of(it) == []
