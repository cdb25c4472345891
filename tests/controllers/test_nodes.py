"""Nodes that fall silent, are taken out of service, or go."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from drakit.api.text.times import format_micro_time
from drakit.client import CLAIMS, EVENTS, LEASES, NODES, PODS, SLICES
from drakit.controllers.claims import ClaimController
from drakit.controllers.composition import Make
from drakit.controllers.context import ControllerContext
from drakit.controllers.eviction import DeviceTaintEviction
from drakit.controllers.garbage.collector import GarbageCollector
from drakit.controllers.nodes import NodeHealth, NodeRemains, NodeTaintEviction, remains
from tests.builders.cluster import Cluster, cluster, on_loop
from tests.builders.manifests import allocation, by_name, claim, consumer, node, pod, resource_slice
from tests.controllers.nodes import OUT_OF_SERVICE, a_node_dies, beat
from tests.scenarios.crashes import check_every_crash

MAKERS = (NodeHealth, NodeTaintEviction, NodeRemains, ClaimController)
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"


@asynccontextmanager
async def running(makers: Sequence[Make] = MAKERS) -> AsyncIterator[Cluster]:
    async with cluster() as made:
        await made.start(makers)
        await made.create(node("node-1"))
        yield made


async def renew(it: Cluster) -> None:
    now = format_micro_time(it.clock.now())
    found = await it.client.find(LEASES, "node-1", namespace="kube-node-lease")
    if found is not None:
        await it.client.patch(found, {"spec": {"renewTime": now}})
    else:
        about = {"name": "node-1", "namespace": "kube-node-lease"}
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": about}
        await it.client.create({**lease, "spec": {"holderIdentity": "node-1", "renewTime": now}})
    await it.settle()


async def taints(it: Cluster) -> set[tuple[str, str]]:
    return {(each.key, each.effect) for each in (await it.find(NODES, "node-1")).spec.taints}


async def is_deleted(it: Cluster, name: str) -> bool:
    found = await it.find(PODS, name)
    return found is None or found.metadata.deletion_timestamp is not None


def tolerating(name: str, seconds: int | None) -> Any:
    made = pod(name, node="node-1")
    toleration: dict[str, Any] = {"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute"}
    made["spec"]["tolerations"] = [{**toleration, "tolerationSeconds": seconds} if seconds is not None else toleration]
    return made


@on_loop
async def test_a_node_that_falls_silent_is_unknown_and_unreachable_until_it_is_back() -> None:
    async with running() as it:
        await beat(it)
        await it.run_for(49)
        assert await taints(it) == set()
        await it.run_for(2)
        [condition] = (await it.find(NODES, "node-1")).status.conditions
        assert (condition.status, condition.reason) == ("Unknown", "NodeStatusUnknown")
        assert await taints(it) == {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")}
        await beat(it)
        assert await taints(it) == set()


@on_loop
async def test_a_lease_that_is_renewed_keeps_a_node_alive_without_heartbeats() -> None:
    async with running() as it:
        await beat(it)
        for _ in range(10):
            await renew(it)
            await it.run_for(20)
        assert await taints(it) == set()
        await it.run_for(51)
        assert (UNREACHABLE, "NoExecute") in await taints(it)


@on_loop
async def test_a_node_that_says_it_is_not_ready_is_tainted_so() -> None:
    async with running() as it:
        await beat(it, "False")
        assert await taints(it) == {(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")}


@on_loop
async def test_a_cordoned_node_is_tainted_and_taints_of_others_stay() -> None:
    async with running() as it:
        mine = {"key": "example.com/mine", "effect": "NoSchedule"}
        patch = {"spec": {"unschedulable": True, "taints": [mine]}}
        await it.client.patch_named(NODES, "node-1", patch)
        await it.settle()
        assert await taints(it) == {
            ("example.com/mine", "NoSchedule"), ("node.kubernetes.io/unschedulable", "NoSchedule"),
        }  # fmt: skip


@on_loop
async def test_a_node_without_an_agent_is_left_alone() -> None:
    async with running() as it:
        await it.run_for(600)
        assert await taints(it) == set()


@on_loop
async def test_pods_leave_an_unreachable_node_when_their_toleration_is_over() -> None:
    async with running() as it:
        await it.create(pod("usual", node="node-1"), tolerating("long", 400), tolerating("ever", None))
        await beat(it)
        await it.run_for(51)
        await it.run_for(295)
        assert not await is_deleted(it, "usual")
        await it.run_for(10)
        assert await is_deleted(it, "usual")
        assert not await is_deleted(it, "long")
        [event] = await it.all(EVENTS)
        assert (event.involved_object.name, event.reason) == ("usual", "TaintManagerEviction")
        told = {each.type: each.reason for each in (await it.find(PODS, "usual")).status.conditions}
        assert told["DisruptionTarget"] == "DeletionByTaintManager"
        await it.run_for(110)
        assert await is_deleted(it, "long")
        assert not await is_deleted(it, "ever")


@on_loop
async def test_more_seconds_than_a_calendar_has_keep_a_pod_on_its_node(caplog: pytest.LogCaptureFixture) -> None:
    async with running() as it:
        await it.create(pod("usual", node="node-1"), tolerating("longest", 2**63 - 1))
        await beat(it)
        await it.run_for(400)
        assert await is_deleted(it, "usual")
        assert not await is_deleted(it, "longest")
        assert [each.message for each in caplog.records if each.levelno >= logging.ERROR] == []


@on_loop
async def test_pods_on_a_node_without_taints_are_looked_at_by_nobody() -> None:
    makers = (NodeTaintEviction, NodeRemains, DeviceTaintEviction)
    async with running(makers) as it:
        await it.create(pod("p", node="node-1"), pod("q"))
        await it.set_status(PODS, "p", {"phase": "Running"})
        assert it.running is not None
        queues = ("taint_eviction", "node_remains", "device_taint_eviction")
        sample = it.running.registry.get_sample_value
        assert [sample("workqueue_adds_total", {"name": each}) for each in queues] == [0, 0, 0]


@on_loop
async def test_pods_stay_when_the_node_is_back_in_time() -> None:
    async with running() as it:
        await it.create(pod("p", node="node-1"))
        await beat(it)
        await it.run_for(200)
        for _ in range(20):
            await beat(it)
            await it.run_for(20)
        assert not await is_deleted(it, "p")


@on_loop
async def test_out_of_service_pods_are_gone_at_once_and_their_claims_are_free() -> None:
    async with running() as it:
        await it.create(claim("c"), pod("p", claims=[by_name("c")], node="node-1"))
        users = [consumer(await it.find(PODS, "p"))]
        await it.set_status(CLAIMS, "c", {"allocation": allocation(), "reservedFor": users})
        await beat(it)
        await it.run_for(51)
        assert not await is_deleted(it, "p")
        found = await it.client.get(NODES, "node-1")
        old = list(found.document["spec"]["taints"])
        added = {"key": OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"}
        await it.client.patch(found, {"spec": {"taints": [*old, added]}})
        await it.settle()
        assert await it.find(PODS, "p") is None
        released = await it.find(CLAIMS, "c")
        assert (released.status.reserved_for, released.status.allocation) == ((), None)


@on_loop
async def test_a_ready_node_is_never_out_of_service() -> None:
    async with running() as it:
        await it.create(pod("p", node="node-1"))
        await beat(it)
        added = {"key": OUT_OF_SERVICE, "effect": "NoExecute"}
        await it.client.patch_named(NODES, "node-1", {"spec": {"taints": [added]}})
        await it.settle()
        assert (await it.find(PODS, "p")).metadata.deletion_timestamp


@pytest.mark.parametrize("restarts", [False, True])
@on_loop
async def test_pods_and_slices_of_a_deleted_node_go_also_over_a_restart(restarts: bool) -> None:
    async with running() as it:
        await it.create(node("node-2"), pod("p", node="node-1"), pod("q", node="node-2"))
        await it.create(resource_slice("s", "d0"), resource_slice("t", "d0", pool="other", node="node-2"))
        await it.run_for(5)
        if restarts:
            await it.kill()
        await it.delete(NODES, "node-1", grace=None)
        if restarts:
            await it.start(MAKERS)
        await it.run_for(30)
        assert len(await it.all(SLICES)) == 2
        await it.run_for(15)
        assert [each.metadata.name for each in await it.all(SLICES)] == ["t"]
        assert [each.metadata.name for each in await it.all(PODS)] == ["q"]


@on_loop
async def test_a_node_that_is_back_soon_keeps_its_pods_and_slices() -> None:
    async with running() as it:
        await it.create(pod("p", node="node-1"), resource_slice("s", "d0"))
        await it.delete(NODES, "node-1", grace=None)
        await it.run_for(30)
        await it.create(node("node-1"))
        await it.run_for(60)
        assert len(await it.all(SLICES)) == len(await it.all(PODS)) == 1


@on_loop
async def test_a_slice_for_a_node_that_never_was_stays() -> None:
    async with running() as it:
        await it.run_for(2)
        await it.create(resource_slice("s", "d0", node="later"))
        await it.run_for(600)
        assert len(await it.all(SLICES)) == 1


@on_loop
async def test_a_slice_for_a_node_that_is_not_registered_yet_stays_over_restarts_of_the_controllers() -> None:
    async with running() as it:
        await it.create(resource_slice("s", "d0", node="later"))
        await it.run_for(60)
        for _ in range(2):
            await it.kill()
            await it.start(MAKERS)
            await it.run_for(600)
        assert len(await it.all(SLICES)) == 1
        await it.create(node("later"))
        await it.run_for(60)
        assert len(await it.all(SLICES)) == 1


@on_loop
async def test_a_slice_that_a_node_owned_goes_with_it_also_while_controllers_are_away() -> None:
    async with running((*MAKERS, GarbageCollector)) as it:
        owner = await it.find(NODES, "node-1")
        owned = resource_slice("s", "d0")
        reference = {"apiVersion": "v1", "kind": "Node", "name": "node-1", "uid": owner.metadata.uid}
        owned["metadata"]["ownerReferences"] = [reference]
        await it.create(owned)
        await it.run_for(5)
        await it.kill()
        await it.delete(NODES, "node-1", grace=None)
        await it.start((*MAKERS, GarbageCollector))
        await it.run_for(60)
        assert await it.all(SLICES) == []


@on_loop
async def test_nodes_of_which_nothing_is_left_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remains, "MOST_REMEMBERED", 4)
    made: list[NodeRemains] = []

    def remembered(context: ControllerContext) -> NodeRemains:
        made.append(NodeRemains(context))
        return made[0]

    async with running((remembered,)) as it:
        await it.create(resource_slice("s", "d0"))
        await it.delete(NODES, "node-1", grace=None)
        for number in range(20):
            await it.create(node(f"passing-{number}"))
            await it.delete(NODES, f"passing-{number}", grace=None)
        assert "node-1" in made[0]._deleted
        assert len(made[0]._deleted) <= 6
        await it.run_for(60)
        assert await it.all(SLICES) == []


def test_they_may_die_after_every_write() -> None:
    makers = (NodeHealth, NodeTaintEviction, NodeRemains)
    assert check_every_crash(a_node_dies, makers, (NODES, PODS, SLICES)) >= 5
