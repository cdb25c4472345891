"""Writes that fail, schedulers that die, and claims that earlier attempts left behind."""

from __future__ import annotations

from typing import Any

import pytest

from drakit.client import CLAIMS, PODS, QUOTAS
from tests.builders.schedulercluster import on_loop
from tests.scheduler.dynamicresources.extended.faults import written
from tests.scheduler.dynamicresources.extended.stage import (
    CLASS,
    asking,
    assert_placed,
    claims,
    message_of,
    stage,
    start_over,
)

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
        assert it.metric("scheduler_resourceclaim_creates_total", status="failure") == 1
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
