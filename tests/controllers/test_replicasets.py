"""Replica sets: as many pods as wanted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from drakit.api.text.times import format_time
from drakit.client import EVENTS, PODS, REPLICA_SETS
from drakit.controllers.garbage import GarbageCollector
from drakit.controllers.replicasets import ReplicaSetController
from tests.builders.cluster import Cluster, cluster, on_loop
from tests.builders.manifests import pod
from tests.controllers.replicasets import a_set_comes_and_goes, replica_set, scale
from tests.scenarios.crashes import check_every_crash

MAKERS = (ReplicaSetController, GarbageCollector)


@asynccontextmanager
async def running() -> AsyncIterator[Cluster]:
    async with cluster() as made:
        await made.start(MAKERS)
        yield made


async def alive(it: Cluster) -> list[Any]:
    return [each for each in await it.all(PODS) if not each.metadata.deletion_timestamp and not each.is_terminal]


@on_loop
async def test_pods_are_made_of_the_template_and_belong_to_the_set() -> None:
    async with running() as it:
        await it.create(replica_set(2))
        made = await alive(it)
        assert len(made) == 2
        owner = await it.find(REPLICA_SETS, "web")
        for each in made:
            assert each.metadata.name.startswith("web-")
            assert each.metadata.labels == {"app": "web", "tier": "front"}
            assert each.metadata.annotations == {"note": "x"}
            assert each.spec.resource_claims[0].resource_claim_template_name == "t"
            [reference] = each.metadata.owner_references
            assert (reference.uid, reference.controller, reference.block_owner_deletion) == (
                owner.metadata.uid, True, True,
            )  # fmt: skip
        assert (owner.status.replicas, owner.status.fully_labeled_replicas) == (2, 2)
        assert owner.status.observed_generation == owner.metadata.generation
        assert {each.reason for each in await it.all(EVENTS)} == {"SuccessfulCreate"}


@on_loop
async def test_it_scales_up_and_down_and_those_without_a_node_go_first() -> None:
    async with running() as it:
        await it.create(replica_set(3))
        bound = (await alive(it))[1].metadata.name
        binding = {
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": bound},
            "target": {"kind": "Node", "name": "node-1"},
        }  # fmt: skip
        await it.client.call("POST", PODS, bound, "binding", binding, namespace="default")
        await it.settle()
        await scale(it, 1)
        assert [each.metadata.name for each in await alive(it)] == [bound]
        await scale(it, 4)
        assert len(await alive(it)) == 4
        await scale(it, 0)
        assert await alive(it) == []
        assert (await it.find(REPLICA_SETS, "web")).status.replicas == 0


@on_loop
async def test_a_pod_that_ends_or_is_deleted_is_replaced() -> None:
    async with running() as it:
        await it.create(replica_set(2))
        first, second = await alive(it)
        await it.set_status(PODS, first.metadata.name, {"phase": "Failed"})
        await it.delete(PODS, second.metadata.name)
        left = await alive(it)
        assert len(left) == 2
        assert not {each.metadata.uid for each in left} & {first.metadata.uid, second.metadata.uid}


@on_loop
async def test_a_pod_of_nobody_that_fits_is_adopted_and_one_that_fits_no_more_is_let_go() -> None:
    async with running() as it:
        await it.create(pod("stray", labels={"app": "web"}), replica_set(2))
        owner = await it.find(REPLICA_SETS, "web")
        assert (await it.find(PODS, "stray")).metadata.owner_references[0].uid == owner.metadata.uid
        assert len(await alive(it)) == 2
        assert owner.status.fully_labeled_replicas == 1
        await it.client.patch_named(PODS, "stray", {"metadata": {"labels": {"app": "db"}}}, namespace="default")
        await it.settle()
        assert (await it.find(PODS, "stray")).metadata.owner_references == ()
        assert len(await alive(it)) == 3


@on_loop
async def test_status_tells_ready_and_after_a_while_available() -> None:
    async with running() as it:
        await it.create(replica_set(2, minReadySeconds=10))
        [first, _] = await alive(it)
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": format_time(it.clock.now())}
        await it.set_status(PODS, first.metadata.name, {"phase": "Running", "conditions": [ready]})
        status = (await it.find(REPLICA_SETS, "web")).status
        assert (status.ready_replicas, status.available_replicas) == (1, 0)
        await it.run_for(11)
        assert (await it.find(REPLICA_SETS, "web")).status.available_replicas == 1


@on_loop
async def test_pods_go_with_their_set() -> None:
    async with running() as it:
        await it.create(replica_set(2))
        await it.delete(REPLICA_SETS, "web", grace=None, propagation="Foreground")
        assert await it.all(PODS) == []
        assert await it.find(REPLICA_SETS, "web") is None


@on_loop
async def test_what_cannot_be_made_is_told_and_tried_again() -> None:
    async with running() as it:
        hard = {"pods": "1"}
        quota = {
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"},
            "spec": {"hard": hard},
        }  # fmt: skip
        made = await it.create(quota)
        await it.client.patch(made, {"status": {"hard": hard, "used": {"pods": "0"}}}, subresource="status")
        await it.create(replica_set(2))
        assert len(await alive(it)) == 1
        assert "FailedCreate" in {each.reason for each in await it.all(EVENTS)}
        await it.client.delete_object(made)
        await it.run_for(60)
        assert len(await alive(it)) == 2


@on_loop
async def test_more_pods_than_are_made_in_one_go_are_made_one_go_after_the_other() -> None:
    async with cluster() as it:
        await it.start((partial(ReplicaSetController, burst=2),))
        await it.create(replica_set(7))
        assert len(await alive(it)) == 7
        await scale(it, 1)
        assert len(await alive(it)) == 1


@on_loop
async def test_a_set_that_asked_for_billions_by_mistake_can_be_scaled_down() -> None:
    async with cluster() as it:
        await it.start((partial(ReplicaSetController, burst=5),))
        await it.client.create(replica_set(2**31 - 1))
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(await it.all(PODS)) > 5
        found = await it.client.get(REPLICA_SETS, "web", namespace="default")
        await it.client.patch(found, {"spec": {"replicas": 1}})
        for _ in range(1_000):
            await asyncio.sleep(0)
        assert len(await alive(it)) == 1


def test_it_may_die_after_every_write_and_makes_no_pod_too_many() -> None:
    kinds = (PODS,)
    assert check_every_crash(a_set_comes_and_goes, (ReplicaSetController,), kinds, apart=("replicasets",)) >= 6
