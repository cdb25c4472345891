"""Usage of quotas is counted from what there is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from drakit.client import CLAIMS, PODS, QUOTAS, Forbidden
from drakit.controllers.quotas import QuotaController
from drakit.informers.cache import ObjectCache
from tests.builders.cluster import Cluster, cluster, on_loop
from tests.builders.manifests import claim, device_class, pod
from tests.controllers.quotas import COUNT, DEVICES, quota

MAKERS = (QuotaController,)


@asynccontextmanager
async def running() -> AsyncIterator[Cluster]:
    async with cluster() as made:
        await made.start(MAKERS)
        yield made


async def used(it: Cluster) -> dict[str, str]:
    return {name: str(amount) for name, amount in (await it.find(QUOTAS, "q")).status.used.items()}


@on_loop
async def test_a_new_quota_counts_what_is_there_already() -> None:
    async with running() as it:
        await it.create(device_class(), claim("a"), claim("b"), pod("p"))
        await it.create(quota(**{COUNT: "5", DEVICES: "9", "pods": "3", "requests.cpu": "1"}))
        assert await used(it) == {COUNT: "2", DEVICES: "2", "pods": "1", "requests.cpu": "0"}
        assert {name: str(amount) for name, amount in (await it.find(QUOTAS, "q")).status.hard.items()} == {
            COUNT: "5", DEVICES: "9", "pods": "3", "requests.cpu": "1",
        }  # fmt: skip


@on_loop
async def test_what_is_deleted_or_has_ended_makes_room() -> None:
    async with running() as it:
        await it.create(quota(**{COUNT: "1", "pods": "1"}))
        await it.create(claim("a"), pod("p"))
        with pytest.raises(Forbidden):
            await it.create(claim("b"))
        await it.delete(CLAIMS, "a", grace=None)
        await it.set_status(PODS, "p", {"phase": "Succeeded"})
        await it.run_for(2)
        assert await used(it) == {COUNT: "0", "pods": "0"}
        await it.create(claim("b"), pod("q"))
        assert await used(it) == {COUNT: "1", "pods": "1"}


@on_loop
async def test_a_charge_for_what_was_never_stored_is_taken_back() -> None:
    async with running() as it:
        await it.create(quota(**{COUNT: "3"}))
        charged = {"hard": {COUNT: "3"}, "used": {COUNT: "2"}}
        await it.set_status(QUOTAS, "q", charged)
        await it.run_for(2)
        assert await used(it) == {COUNT: "0"}


@on_loop
async def test_a_changed_limit_is_taken_over() -> None:
    async with running() as it:
        await it.create(quota(**{COUNT: "1", "pods": "1"}))
        await it.client.patch_named(QUOTAS, "q", {"spec": {"hard": {"pods": None, COUNT: "7"}}}, namespace="default")
        await it.settle()
        status = (await it.find(QUOTAS, "q")).status
        assert {name: str(amount) for name, amount in status.hard.items()} == {COUNT: "7"}
        assert await used(it) == {COUNT: "0"}


@on_loop
async def test_a_cache_that_lags_behind_gives_nothing_back() -> None:
    async with running() as it:
        await it.create(quota(**{COUNT: "2"}))
        await it.create(claim("a"), claim("b"))
        await it.run_for(2)
        assert it.running is not None
        late, seen = it.running.informers.of(CLAIMS).cache, ObjectCache.all
        with pytest.MonkeyPatch.context() as patch:
            # A watch that is late: the cache has seen neither claim.
            patch.setattr(ObjectCache, "all", lambda cache, *of: [] if cache is late else seen(cache, *of))
            await it.client.patch_named(QUOTAS, "q", {"metadata": {"labels": {"a": "b"}}}, namespace="default")
            await it.run_for(5)
            assert await used(it) == {COUNT: "2"}
            with pytest.raises(Forbidden):
                await it.create(claim("c"))
