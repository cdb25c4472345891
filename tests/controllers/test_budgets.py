"""Disruption budgets: how many pods may go, and evictions that ask."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from drakit.client import BUDGETS, EVENTS, PODS
from drakit.controllers.budgets import BudgetController
from tests.builders.cluster import Cluster, cluster, on_loop
from tests.builders.manifests import pod
from tests.controllers.budgets import budget, evict, pods_are_evicted, runs
from tests.controllers.replicasets import replica_set
from tests.scenarios.crashes import check_every_crash

REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."


@asynccontextmanager
async def running() -> AsyncIterator[Cluster]:
    async with cluster() as made:
        await made.start((BudgetController,))
        yield made


async def numbers(it: Cluster) -> tuple[int, int, int, int]:
    """Allowed, healthy, desired, expected."""
    status = (await it.find(BUDGETS, "b")).status
    return status.disruptions_allowed, status.current_healthy, status.desired_healthy, status.expected_pods


async def owned(it: Cluster, count: int, *, wanted: int) -> None:
    """Ready pods of a replica set."""
    made: Any = await it.create(replica_set(wanted))
    reference = {
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": made.view.metadata.uid,
        "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip
    for number in range(count):
        document = pod(f"p{number}", labels={"app": "web"})
        document["metadata"]["ownerReferences"] = [reference]
        await it.create(document)
    await runs(it, *(f"p{number}" for number in range(count)))


@on_loop
async def test_a_number_that_must_stay_is_of_the_pods_there_are() -> None:
    async with running() as it:
        await runs(it, "a", "b", "c")
        await runs(it, "c", ready=False)
        await it.create(budget(minAvailable=1))
        assert await numbers(it) == (1, 2, 1, 3)
        status = (await it.find(BUDGETS, "b")).status
        assert status.observed_generation == 1
        [said] = status.conditions
        assert (said.type, said.status, said.reason) == ("DisruptionAllowed", "True", "SufficientPods")
        await runs(it, "b", ready=False)
        assert (await it.find(BUDGETS, "b")).status.conditions[0].reason == "InsufficientPods"


@on_loop
async def test_shares_are_of_what_the_workload_wants() -> None:
    async with running() as it:
        await it.create(budget(maxUnavailable="30%"))
        await owned(it, 4, wanted=5)
        assert await numbers(it) == (1, 4, 3, 5)


@on_loop
async def test_a_share_of_pods_that_nobody_wants_is_told_of() -> None:
    async with running() as it:
        await runs(it, "a")
        await it.create(budget(maxUnavailable=1))
        assert (await numbers(it))[0] == 0
        assert [each.reason for each in await it.all(EVENTS)] == ["UnmanagedPods"]


@on_loop
async def test_an_eviction_takes_from_the_budget_until_nothing_is_left() -> None:
    async with running() as it:
        await runs(it, "a", "b", "c")
        await it.create(budget(minAvailable=1))
        assert await evict(it, "a") is None
        assert await it.find(PODS, "a") is None
        assert await evict(it, "b") is None
        refused = await evict(it, "c")
        assert refused is not None
        assert (refused.status.code, refused.status.reason, refused.status.message) == (
            429, "TooManyRequests", REFUSED,
        )  # fmt: skip
        details = refused.status.details
        assert details is not None
        [cause] = details.causes
        assert (cause.reason, cause.message) == (
            "DisruptionBudget", "The disruption budget b needs 1 healthy pods and has 1 currently",
        )  # fmt: skip
        assert await it.find(PODS, "c") is not None


@on_loop
async def test_two_evictions_at_the_same_time_cannot_both_have_the_last() -> None:
    async with running() as it:
        await runs(it, "a", "b")
        await it.create(budget(minAvailable=1))
        answers = await asyncio.gather(evict(it, "a"), evict(it, "b"))
        assert sorted(answer is None for answer in answers) == [False, True]


@on_loop
async def test_pods_that_have_not_begun_or_have_ended_may_always_go() -> None:
    async with running() as it:
        await it.create(budget(minAvailable=5), pod("new", labels={"app": "web"}))
        assert await evict(it, "new") is None
        await runs(it, "done")
        await it.set_status(PODS, "done", {"phase": "Failed"})
        assert await evict(it, "done") is None


@on_loop
async def test_a_pod_that_is_not_ready_goes_if_enough_others_are_or_the_budget_says_so() -> None:
    async with running() as it:
        await runs(it, "a")
        await runs(it, "sick", ready=False)
        await it.create(budget(minAvailable=1))
        assert await evict(it, "sick") is None
        await runs(it, "a", ready=False)
        assert await evict(it, "a") is not None
        await it.client.patch_named(
            BUDGETS, "b", {"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}}, namespace="default"
        )
        await it.settle()
        assert await evict(it, "a") is None


@on_loop
async def test_of_two_budgets_the_server_cannot_choose() -> None:
    async with running() as it:
        await runs(it, "a")
        other = budget(minAvailable=0)
        await it.create(budget(minAvailable=0), {**other, "metadata": {**other["metadata"], "name": "c"}})
        refused = await evict(it, "a")
        assert refused is not None
        assert refused.status.code == 500
        assert "more than one PodDisruptionBudget" in refused.status.message


@on_loop
async def test_an_evicted_pod_says_so_and_one_that_stays_counts_again_later() -> None:
    async with running() as it:
        await runs(it, "a", "b")
        held = await it.client.get(PODS, "a", namespace="default")
        await it.client.patch(held, {"metadata": {"finalizers": ["example.com/held"]}})
        await it.create(budget(minAvailable=1))
        assert await evict(it, "a") is None
        marked = await it.find(PODS, "a")
        [target] = [each for each in marked.status.conditions if each.type == "DisruptionTarget"]
        assert (target.reason, target.message) == ("EvictionByEvictionAPI", "Eviction API: evicting")
        assert marked.metadata.deletion_timestamp is not None
        assert (await it.find(BUDGETS, "b")).status.disrupted_pods == {}


def test_a_crash_after_any_write_changes_nothing() -> None:
    assert check_every_crash(pods_are_evicted, (BudgetController,), [BUDGETS, PODS], exact=False, at_most=True) >= 3
