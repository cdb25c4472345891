"""Writes that fail, schedulers that die, and claims that earlier attempts left behind."""

from __future__ import annotations

from typing import Any

import pytest

from drakit.client import CLAIMS, CLASSES, NODES, PODS, QUOTAS, SLICES
from tests.scheduler.cluster import SchedulingCluster, on_loop
from tests.scheduler.dynamicresources.extended.faults import written
from tests.scheduler.dynamicresources.extended.stage import (
    CLASS,
    GPU,
    asking,
    claims,
    devices_of,
    gpu_class,
    mappings_of,
    message_of,
    plugin_node,
    requests_of,
    stage,
    start_over,
    the_claim,
)
from tests.scheduler.manifests import node, resource_slice

WRITTEN = [
    "POST resourceclaims",
    "PUT resourceclaims",
    "PUT resourceclaims/status",
    "PATCH pods/status",
    "POST pods/binding",
]
UNDONE = ["PATCH pods/status", "PUT resourceclaims/status", "PUT resourceclaims", "DELETE resourceclaims"]


def own(writes: list[str]) -> list[str]:
    """Without events and conditions of a refused pod."""
    return [each for each in writes if "events" not in each]


async def assert_placed(it: SchedulingCluster, name: str = "p") -> None:
    """As if nothing had ever gone wrong."""
    assert await it.node_of(name) == "node-1"
    made, placed = await the_claim(it), await it.pod(name)
    assert requests_of(made) == {"container-0-request-0": (CLASS, 1)}
    assert len(devices_of(made)) == 1
    assert [each.uid for each in made.status.reserved_for] == [placed.metadata.uid]
    assert made.metadata.finalizers == ("resource.kubernetes.io/delete-protection",)
    assert placed.status.extended_resource_claim_status is not None
    assert placed.status.extended_resource_claim_status.resource_claim_name == made.metadata.name
    assert await mappings_of(it, name) == [("ctr", GPU, "container-0-request-0")]


@on_loop
async def test_claim_finalizer_claim_status_and_pod_status_are_written_in_this_order_before_the_binding() -> None:
    async with stage("d0", start=False) as it:
        line = await start_over(it)
        await it.create(asking(gpu=1))
        assert own(line.writes) == WRITTEN
        await assert_placed(it)


@pytest.mark.parametrize("failing", WRITTEN)
def test_what_was_written_is_undone_in_reverse_when_a_write_fails_and_the_next_attempt_succeeds(failing: str) -> None:
    @on_loop
    async def run() -> None:
        async with stage("d0", start=False) as it:
            line = await start_over(it)
            done = WRITTEN[: WRITTEN.index(failing)]
            line.refuse = lambda request: written(request) == failing and not line.refused
            await it.create(asking(gpu=1))
            assert line.refused == [failing]
            undone = own(line.writes)[len(done) :]
            assert undone[: len(expected_undo(failing))] == expected_undo(failing)
            assert await claims(it) == []
            assert (await it.pod("p")).status.extended_resource_claim_status is None
            await it.run_for(30)
            await assert_placed(it)

    run()


def expected_undo(failing: str) -> list[str]:
    """The reverse of what was there when the write failed; a status that may have been written is cleared."""
    steps = {
        "POST resourceclaims": [],
        "PUT resourceclaims": ["DELETE resourceclaims"],
        "PUT resourceclaims/status": ["PUT resourceclaims", "DELETE resourceclaims"],
        "PATCH pods/status": UNDONE,
        "POST pods/binding": UNDONE,
    }
    return steps[failing]


@pytest.mark.parametrize("losing", WRITTEN[:4])
def test_a_write_whose_answer_is_lost_leaves_one_claim_in_the_end(losing: str) -> None:
    @on_loop
    async def run() -> None:
        async with stage("d0", start=False) as it:
            line = await start_over(it)
            lost: list[str] = []

            def lose(request: Any) -> bool:
                if lost or written(request) != losing:
                    return False
                lost.append(losing)
                return True

            line.lose = lose
            await it.create(asking(gpu=1))
            await it.run_for(60)
            assert lost == [losing]
            await assert_placed(it)

    run()


@pytest.mark.parametrize("last", range(1, 6))
def test_a_scheduler_that_dies_after_a_write_leaves_the_same_to_the_next_one(last: int) -> None:
    @on_loop
    async def run() -> None:
        async with stage("d0", dies_after=last) as it:
            await it.create(asking(gpu=1))
            transport = it.scheduler_transport
            assert transport is not None
            assert transport.died.is_set()
            before = [each.metadata.uid for each in await claims(it)]
            assert len(before) == 1
            await it.kill_scheduler()
            await it.start_scheduler()
            await it.run_for(30)
            await assert_placed(it)
            assert [each.metadata.uid for each in await claims(it)] == before

    run()


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
async def test_a_quota_that_refuses_the_claim_keeps_the_pod_pending_until_there_is_room() -> None:
    hard = {f"{CLASS}.deviceclass.resource.k8s.io/devices": "0"}
    async with stage("d0") as it:
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"}}
        await it.create({**quota, "spec": {"hard": hard}})
        await it.run_for(1)
        await it.create(asking(gpu=1))
        message = await message_of(it)
        assert "create claim for extended resources default/p-extended-resources-: " in message
        assert "exceeded quota: q" in message
        assert it.figure("scheduler_resourceclaim_creates_total", status="failure") == 1
        await it.delete(QUOTAS, "q")
        await it.run_for(30)
        await assert_placed(it)


@on_loop
async def test_devices_of_a_binding_that_failed_go_to_somebody_else() -> None:
    async with stage("d0", start=False) as it:
        line = await start_over(it)
        line.refuse = lambda request: request.path.endswith("/pods/p/status")
        await it.create(asking("p", gpu=1))
        await it.create(asking("q", gpu=1))
        await it.run_for(30)
        assert await it.node_of("q") == "node-1"
        assert [each.metadata.generate_name for each in await claims(it)] == ["q-extended-resources-"]


@on_loop
async def test_a_pod_that_is_deleted_while_it_is_bound_leaves_no_claim() -> None:
    async with stage("d0", start=False) as it:
        line = await start_over(it)
        gone: list[str] = []

        async def delete_pod() -> None:
            await it.client.delete(PODS, "p", namespace="default", grace=0)
            gone.append("p")

        line.before["PUT resourceclaims/status"] = delete_pod
        await it.create(asking(gpu=1))
        await it.run_for(60)
        assert gone == ["p"]
        assert await it.all(CLAIMS) == []
        line.before.clear()
        await it.create(asking("q", gpu=1))
        assert await it.node_of("q") == "node-1"


@on_loop
async def test_a_claim_left_by_a_dead_scheduler_counts_for_other_pods() -> None:
    async with stage("d0", start=False) as it:
        await leave_claim(it)
        await it.create(asking("q", gpu=1), plugin_node("plugin", gpu="1"))
        await it.start_scheduler()
        await it.run_for(30)
        placed = {name: await it.node_of(name) for name in "pq"}
        assert placed == {"p": "node-1", "q": "plugin"}
