"""A pod of higher priority that fits nowhere has others evicted: the fewest, and never its equals."""

from __future__ import annotations

import pytest

from drakit.base.gates import FeatureGates
from drakit.client import CLAIMS, PODS
from drakit.controllers.composition import ALL
from drakit.scheduler.config import default_configuration
from tests.builders.manifests import allocation, pod_group
from tests.builders.podmanifests import by_name, claim, node, resource_slice
from tests.builders.schedulercluster import on_loop
from tests.scheduler.dynamicresources.faults import Unreliable, another_scheduler, answer
from tests.scheduler.preemption.scenes import (
    GATES,
    add,
    devices_of,
    end,
    leaving,
    message_of,
    preempting,
    priority_class,
    scene,
    user,
)

REFUSED = "0/1 nodes are available: 1 cannot allocate all claims. still not schedulable"


@on_loop
async def test_a_pod_gets_the_device_of_one_with_a_lower_priority() -> None:
    async with scene("d0") as it:
        await add(it, "a", "low")
        await add(it, "b", "high")
        victim = await it.pod("a")
        assert victim.metadata.deletion_timestamp  # with its grace period
        target = await it.condition("a", "DisruptionTarget")
        assert target is not None
        assert (target.status, target.reason) == ("True", "PreemptionByScheduler")
        assert target.message == "default-scheduler: preempting to accommodate a higher priority pod"
        uid = (await it.pod("b")).metadata.uid
        assert await it.told("a", "Preempted") == [f"Preempted by pod {uid} on node node-1"]
        assert (await it.pod("b")).status.nominated_node_name == "node-1"
        assert await message_of(it, "b") == "0/1 nodes are available: 1 cannot allocate all claims."
        await end(it, "a")
        await it.run_for(10)
        assert await it.node_of("b") == "node-1"
        assert await devices_of(it, "b") == ["d0"]
        assert (await it.pod("b")).status.nominated_node_name == ""
        assert it.metric("scheduler_preemption_attempts_total") == 1
        assert it.metric("scheduler_preemption_victims_sum") == 1


@on_loop
async def test_nobody_is_evicted_by_default() -> None:
    async with scene("d0", config=default_configuration(GATES)) as it:
        await add(it, "a", "low")
        await add(it, "b", "high")
        await it.run_for(30)
        assert await leaving(it) == []
        assert await message_of(it, "b") == REFUSED


@pytest.mark.parametrize("priority", ["middle", "high"])
def test_nobody_is_evicted_for_an_equal_or_a_lower_pod(priority: str) -> None:
    async def run() -> None:
        async with scene("d0") as it:
            await add(it, "a", priority)
            await add(it, "b", "middle")
            await it.run_for(30)
            assert await leaving(it) == []
            tail = "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
            assert await message_of(it, "b") == f"{REFUSED}, {tail}"

    on_loop(run)()


@on_loop
async def test_a_pod_that_never_preempts_does_not() -> None:
    async with scene("d0") as it:
        await add(it, "a", "low")
        await it.create({**priority_class("polite", 10), "preemptionPolicy": "Never"})
        await add(it, "b", "polite")
        assert await leaving(it) == []
        tail = "preemption: not eligible due to preemptionPolicy=Never."
        assert await message_of(it, "b") == f"{REFUSED}, {tail}"


@on_loop
async def test_nobody_is_evicted_when_that_would_not_be_enough() -> None:
    async with scene("d0") as it:
        await add(it, "a", "low")
        two = claim("b")
        two["spec"]["devices"]["requests"][0]["exactly"]["count"] = 2
        await it.create(two, user("b", "high", "b"))
        assert await leaving(it) == []
        tail = "preemption: 0/1 nodes are available: 1 cannot allocate all claims."
        assert await message_of(it, "b") == f"{REFUSED}, {tail}"


@on_loop
async def test_nobody_is_evicted_where_that_cannot_help() -> None:
    async with scene("d0") as it:
        await add(it, "a", "low")
        await add(it, "b", "high", nodeSelector={"no": "where"})
        assert await leaving(it) == []
        tail = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
        assert (await message_of(it, "b")).endswith(tail)


@on_loop
async def test_of_several_the_least_important_goes() -> None:
    async with scene("d0", "d1") as it:
        await add(it, "a", "middle")
        await add(it, "b", "low")
        await add(it, "c", "high")
        assert await leaving(it) == ["b"]


@on_loop
async def test_the_node_is_chosen_where_that_does_least_harm() -> None:
    async with scene("d0") as it:
        await it.create(node("node-2"), resource_slice("other", "e0", node="node-2", pool="other"))
        await add(it, "a", "middle")
        await add(it, "b", "low")
        await add(it, "c", "high")
        assert await leaving(it) == ["b"]
        assert (await it.pod("c")).status.nominated_node_name == await it.node_of("b")


@on_loop
async def test_a_claim_that_somebody_uses_who_stays_frees_nothing() -> None:
    async with scene("d0") as it:
        await it.create(claim("shared"), user("a", "low", "shared"), user("b", "high", "shared"))
        await add(it, "c", "middle")
        assert await leaving(it) == []
        await add(it, "d", "high")
        assert await leaving(it) == []


@on_loop
async def test_a_claim_that_only_victims_share_costs_all_of_them() -> None:
    async with scene("d0", "d1") as it:
        await it.create(claim("shared"), user("a", "low", "shared"), user("b", "low", "shared"))
        await add(it, "x", "middle")
        await add(it, "c", "high")
        assert await leaving(it) == ["a", "b"]
        await end(it, "a")
        await it.run_for(5)
        assert await it.node_of("c") == ""
        assert await leaving(it) == ["b"]
        await end(it, "b")
        await it.run_for(10)
        assert await it.node_of("c") == "node-1"


@on_loop
async def test_a_claim_that_is_reserved_for_a_group_frees_nothing() -> None:
    gates = FeatureGates.of({"GenericWorkload": True, "DRAWorkloadResourceClaims": True})
    async with scene("d0", gates=gates) as it:
        member = user("a", "low", "shared")
        member["spec"]["schedulingGroup"] = {"podGroupName": "pg"}
        await it.create(claim("shared"), pod_group("pg", [by_name("shared", "use-shared")]), member)
        assert await it.node_of("a") == "node-1"
        await add(it, "b", "high")
        assert await leaving(it) == []


@on_loop
async def test_admin_access_frees_nothing() -> None:
    async with scene("d0") as it:
        await it.create(
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": "admin", "labels": {"resource.kubernetes.io/admin-access": "true"}},
            }
        )
        admin = claim("watcher")
        admin["metadata"]["namespace"] = "admin"
        admin["spec"]["devices"]["requests"][0]["exactly"]["adminAccess"] = True
        watching = user("watcher", "low", "watcher")
        watching["metadata"]["namespace"] = "admin"
        await it.create(admin, watching)
        assert await it.node_of("admin/watcher") == "node-1"
        await add(it, "a", "low")
        await add(it, "b", "high")
        assert await leaving(it) == ["a"]


@on_loop
async def test_extended_resources_are_devices_like_others() -> None:
    async with scene("d0") as it:
        klass = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "named"}}
        await it.create({**klass, "spec": {"extendedResourceName": "example.com/gpu"}})
        for name, priority in (("a", "low"), ("b", "high")):
            made = user(name, priority)
            amounts = {"example.com/gpu": "1"}
            made["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
            await it.create(made)
        assert await leaving(it) == ["a"]
        await end(it, "a")
        await it.run_for(10)
        assert await it.node_of("b") == "node-1"


@on_loop
async def test_room_of_a_node_counts_as_well_as_devices() -> None:
    async with scene() as it:
        await it.create(user("a", "low", cpu="5"), user("b", "middle", cpu="2"))
        await it.create(user("c", "high", cpu="4"))
        assert await leaving(it) == ["a"]
        await end(it, "a")
        await it.run_for(10)
        assert await it.node_of("c") == "node-1"


@on_loop
async def test_room_and_devices_may_be_freed_by_different_pods() -> None:
    async with scene("d0") as it:
        await it.create(user("roomy", "low", cpu="6"))
        await add(it, "small", "low")
        await it.create(user("tiny", "low", cpu="100m"))
        await add(it, "c", "high", cpu="5")
        assert await leaving(it) == ["roomy", "small"]


@on_loop
async def test_an_unused_allocation_goes_before_any_pod_does() -> None:
    """The pod's claim is allocated where no node is; with both devices taken, a pod would have to go as well."""
    async with scene("d0", "d1") as it:
        await add(it, "a", "low")
        await it.create(claim("b"))
        await it.set_status(CLAIMS, "b", {"allocation": allocation("gone", "no-such-node")})
        await it.create(user("b", "high", "b"))
        await it.run_for(5)
        assert await it.node_of("b") == "node-1"
        assert await leaving(it) == []


@on_loop
async def test_pods_that_leave_anyway_are_waited_for_instead_of_evicting_others() -> None:
    async with scene("d0", "d1") as it:
        await add(it, "a", "middle")
        await add(it, "b", "low")
        await it.delete(PODS, "a", grace=30)
        await add(it, "c", "high")
        await it.run_for(20)
        assert await leaving(it) == ["a"]
        assert await it.told("a", "Preempted") == []
        assert (await it.pod("c")).status.nominated_node_name == "node-1"
        await end(it, "a")
        await it.run_for(10)
        assert await it.node_of("c") == "node-1"


@on_loop
async def test_a_claim_whose_users_are_gone_is_waited_for() -> None:
    """Its controller is not there yet: the devices will be free, and nobody has to be evicted for others."""
    async with scene("d0", "d1") as it:
        await add(it, "a", "low")
        await add(it, "b", "low")
        await it.kill_controllers()
        await end(it, "a")
        await add(it, "c", "high")
        await it.run_for(60)
        assert await leaving(it) == []
        await it.start(ALL)
        await it.run_for(20)
        assert await it.node_of("c") == "node-1"
        assert await it.node_of("b") == "node-1"


@on_loop
async def test_a_pod_that_is_still_being_bound_can_be_a_victim() -> None:
    """Its device waits for a condition that never comes."""
    async with scene() as it:
        waiting = {
            "name": "d0",
            "bindsToNode": True,
            "bindingConditions": ["Ready"],
            "bindingFailureConditions": ["No"],
        }
        made = resource_slice("slice")
        made["spec"]["devices"] = [waiting]
        await it.create(made)
        await add(it, "a", "low")
        assert await it.node_of("a") == ""
        await add(it, "b", "high")
        await it.run_for(5)
        assert await it.find(PODS, "a") is None
        assert await devices_of(it, "b") == ["d0"]


@on_loop
async def test_one_pod_of_a_gang_evicts_nobody() -> None:
    gates = FeatureGates.of({"GenericWorkload": True, "GangScheduling": True})
    async with scene("d0", gates=gates) as it:
        await add(it, "a", "low")
        group = pod_group("pg", [])
        group["spec"]["schedulingPolicy"] = {"gang": {"minCount": 1}}
        member = user("b", "high", "b")
        member["spec"]["schedulingGroup"] = {"podGroupName": "pg"}
        await it.create(group, claim("b"), member)
        await it.run_for(5)
        assert await leaving(it) == []
        tail = "preemption: not eligible: for one pod of a gang alone nobody is evicted."
        assert (await message_of(it, "b")).endswith(tail)


@on_loop
async def test_a_victim_that_cannot_be_evicted_is_tried_again() -> None:
    async with scene("d0") as it:
        await add(it, "a", "low")
        await it.kill_scheduler()
        faults = [answer(500, "InternalError")] * 2
        transport = Unreliable(it, *faults, concerns=lambda request: request.method == "DELETE")
        async with another_scheduler(it, transport, config=preempting()):
            await add(it, "b", "high")
            assert await leaving(it) == []
            await it.run_for(10)
            assert transport.met == 2
            assert await leaving(it) == ["a"]
            await end(it, "a")
            await it.run_for(10)
            assert await it.node_of("b") == "node-1"
