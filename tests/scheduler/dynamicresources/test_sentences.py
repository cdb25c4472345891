"""What a waiting pod says by itself, behind kube-scheduler's sentence; and that it says no more unless wanted."""

from __future__ import annotations

import asyncio

import pytest

from drakit.client import Client, InProcess
from drakit.scheduler import Scheduler
from tests.builders.documents import Plain, claim_document, request_of, slice_document
from tests.builders.manifests import by_name, by_template, device_class
from tests.builders.podmanifests import node, pod
from tests.builders.schedulercluster import SchedulingCluster, cluster, on_loop, scheduling

WORN = {"name": "d1", "taints": [{"key": "worn", "effect": "NoSchedule"}]}
ENDING = ": see drakit explain pod p -n default."


async def refused(it: SchedulingCluster, claim: Plain, *devices: str | Plain, hints: bool | None = True) -> str:
    """The message of a pod that asks for the claim on a node with these devices, of which d0 is somebody's."""
    client = Client(InProcess(it.server), clock=it.clock)
    scheduler = Scheduler(client, gates=it.gates) if hints is None else Scheduler(client, gates=it.gates, hints=hints)
    task = asyncio.create_task(scheduler.run())
    try:
        await it.create(node("node-1"), device_class(), slice_document("s", *devices, node="node-1", pool="pool"))
        await it.create(claim_document("first", namespace="default"), pod("first", claims=[by_name("first")]))
        await it.settle()
        await it.create(claim, pod("p", claims=[by_name("wanted")]))
        condition = await it.condition("p")
        assert condition is not None
        assert await it.told("p", "FailedScheduling") == [condition.message]
        return condition.message
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def wanting(count: int) -> Plain:
    return claim_document("wanted", request_of("gpu", count=count), namespace="default")


@pytest.mark.parametrize(
    ("count", "devices", "reason"),
    [
        (1, ["d0"], "1 of 1 devices of its class are in use"),
        (2, ["d0", WORN, "d2"], "1 of 3 devices of its class are in use"),
        (9, ["d0", "d2"], "1 of 2 devices of its class are in use"),
    ],
)
def test_the_claim_the_request_and_the_most_frequent_reason_are_told(
    count: int, devices: list[str | Plain], reason: str
) -> None:
    @on_loop
    async def told() -> None:
        async with cluster() as it:
            message = await refused(it, wanting(count), *devices)
            assert message.startswith("0/1 nodes are available: 1 cannot allocate all claims.")
            assert message.endswith(f"Claim wanted, request gpu, wants {count} on one node: {reason}{ENDING}")

    told()


@on_loop
async def test_nothing_more_is_told_unless_it_is_wanted() -> None:
    async with cluster() as it:
        assert "Claim" not in await refused(it, wanting(1), "d0", hints=None)


@on_loop
async def test_a_pod_whose_claim_or_template_is_missing_is_told_once() -> None:
    async with scheduling(hints=True) as it:
        await it.create(
            node("node-1"), pod("p", claims=[by_name("nowhere")]), pod("q", claims=[by_template("g", "none")])
        )
        assert await it.told("p") == []
        await it.run_for(60)
        assert await it.told("p") == ['could not find ResourceClaim "default/nowhere"']
        assert await it.told("q", "FailedResourceClaimCreation") != []
        [waiting] = await it.told("q", "FailedScheduling")
        assert "none" in waiting or "not created" in waiting


@on_loop
async def test_without_hints_a_pod_whose_claim_is_missing_waits_silently() -> None:
    async with scheduling() as it:
        await it.create(node("node-1"), pod("p", claims=[by_name("nowhere")]))
        await it.run_for(60)
        assert await it.told("p") == []


@on_loop
async def test_a_pod_whose_claim_comes_within_a_moment_is_not_told_that_it_was_missing() -> None:
    async with scheduling(hints=True) as it:
        await it.create(node("node-1"), device_class(), slice_document("s", "d0", node="node-1", pool="pool"))
        await it.create(pod("p", claims=[by_name("late")]))
        await it.run_for(2)
        await it.create(claim_document("late", namespace="default"))
        await it.run_for(60)
        assert await it.node_of("p") == "node-1"
        assert await it.told("p", "FailedScheduling") == []
