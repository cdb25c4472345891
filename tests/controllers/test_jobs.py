"""Jobs: pods that run until enough of them have succeeded, or too many have failed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from drakit.client import EVENTS, JOBS, PODS, QUOTAS
from drakit.controllers.garbage import GarbageCollector
from drakit.controllers.jobs import FinishedJobs, JobController
from tests.builders.cluster import Cluster, cluster, on_loop
from tests.builders.manifests import pod as any_pod
from tests.controllers.jobs import (
    a_job_is_suspended_and_dropped,
    a_job_succeeds_in_the_end,
    an_indexed_job_fails,
    conditions,
    end,
    fail,
    job,
    pods_of,
)
from tests.scenarios.crashes import Scenario, check_every_crash

MAKERS = (JobController, FinishedJobs, GarbageCollector)
INDEX = "batch.kubernetes.io/job-completion-index"
TRACKING = "batch.kubernetes.io/job-tracking"
REACHED = ("CompletionsReached", "Reached expected number of succeeded pods")


@asynccontextmanager
async def running() -> AsyncIterator[Cluster]:
    async with cluster() as made:
        await made.start(MAKERS)
        yield made


async def begun(it: Cluster, **spec: Any) -> None:
    await it.create(job(**spec))
    await it.run_for(1)


@on_loop
async def test_a_pod_is_made_and_the_job_completes_with_it() -> None:
    async with running() as it:
        await begun(it)
        [pod] = await pods_of(it)
        owner = await it.find(JOBS, "train")
        assert pod.metadata.name.startswith("train-")
        assert pod.metadata.finalizers == (TRACKING,)
        assert pod.metadata.labels["batch.kubernetes.io/controller-uid"] == owner.metadata.uid
        assert (owner.status.active, owner.status.ready, owner.status.terminating) == (1, 0, 0)
        assert owner.status.start_time is not None
        await end(it, pod)
        done = await it.find(JOBS, "train")
        assert (done.status.active, done.status.succeeded, done.status.failed) == (0, 1, 0)
        assert await conditions(it) == {"SuccessCriteriaMet": REACHED, "Complete": REACHED}
        assert done.status.completion_time is not None
        assert (await it.find(PODS, pod.metadata.name)).metadata.finalizers == ()
        assert {each.reason for each in await it.all(EVENTS)} == {"SuccessfulCreate", "Completed"}


@on_loop
async def test_no_more_pods_run_than_are_allowed_nor_than_are_needed() -> None:
    async with running() as it:
        await begun(it, parallelism=2, completions=3)
        first, _ = await pods_of(it)
        await end(it, first)
        assert len(await pods_of(it)) == 2
        for pod in await pods_of(it):
            await end(it, pod)
        assert await pods_of(it) == []
        assert "Complete" in await conditions(it)


@on_loop
async def test_a_failed_pod_is_replaced_later_each_time_until_the_limit() -> None:
    async with running() as it:
        await begun(it, backoffLimit=1)
        [pod] = await pods_of(it)
        await fail(it, pod)
        assert await pods_of(it) == []
        await it.run_for(8)
        assert await pods_of(it) == []
        await it.run_for(3)
        [again] = await pods_of(it)
        await fail(it, again)
        told = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
        assert await conditions(it) == {"FailureTarget": told, "Failed": told}
        assert (await it.find(JOBS, "train")).status.failed == 2
        await it.run_for(100)
        assert await pods_of(it) == []
        [event] = [each for each in await it.all(EVENTS) if each.type == "Warning"]
        assert (event.reason, event.message) == told


@on_loop
async def test_containers_that_are_started_again_count_against_the_limit() -> None:
    async with running() as it:
        await begun(it, restart="OnFailure", backoffLimit=2)
        [pod] = await pods_of(it)
        status = {"name": "ctr", "image": "", "imageID": "", "ready": False, "restartCount": 2, "state": {}}
        await it.set_status(PODS, pod.metadata.name, {"phase": "Running", "containerStatuses": [status]})
        await it.run_for(1)
        assert (await conditions(it))["Failed"][0] == "BackoffLimitExceeded"


@on_loop
async def test_a_job_that_runs_for_too_long_fails_and_its_pods_go() -> None:
    async with running() as it:
        await begun(it, activeDeadlineSeconds=30)
        await it.run_for(28)
        assert len(await pods_of(it)) == 1
        await it.run_for(2)
        assert await pods_of(it) == []
        told = ("DeadlineExceeded", "Job was active longer than specified deadline")
        assert (await conditions(it))["Failed"] == told
        assert (await it.find(JOBS, "train")).status.failed == 1


@on_loop
async def test_pods_of_an_indexed_job_know_their_index() -> None:
    async with running() as it:
        await begun(it, parallelism=3, completions=3, completionMode="Indexed")
        made = await pods_of(it)
        assert [pod.metadata.labels[INDEX] for pod in made] == ["0", "1", "2"]
        whole = await it.client.get(PODS, made[1].metadata.name, namespace="default")
        assert whole.view.metadata.name.startswith("train-1-")
        assert whole.document["spec"]["hostname"] == "train-1"
        [variable] = whole.document["spec"]["containers"][0]["env"]
        assert variable["name"] == "JOB_COMPLETION_INDEX"
        assert variable["valueFrom"]["fieldRef"]["fieldPath"] == f"metadata.labels['{INDEX}']"
        await end(it, made[2])
        await end(it, made[0])
        status = (await it.find(JOBS, "train")).status
        assert (status.completed_indexes, status.succeeded) == ("0,2", 2)
        await fail(it, made[1])
        await it.run_for(11)
        [again] = await pods_of(it)
        assert again.metadata.annotations[INDEX] == "1"
        await end(it, again)
        assert (await it.find(JOBS, "train")).status.completed_indexes == "0-2"
        assert "Complete" in await conditions(it)


@on_loop
async def test_an_index_fails_by_itself_and_the_job_when_all_are_over() -> None:
    async with running() as it:
        await begun(it, parallelism=2, completions=2, completionMode="Indexed", backoffLimitPerIndex=1)
        one, two = await pods_of(it)
        await fail(it, one)
        await it.run_for(11)
        again = (await pods_of(it))[0]
        assert again.metadata.annotations["batch.kubernetes.io/job-index-failure-count"] == "1"
        await fail(it, again)
        status = (await it.find(JOBS, "train")).status
        assert (status.failed_indexes, status.failed) == ("0", 2)
        assert await conditions(it) == {}
        await end(it, two)
        assert (await conditions(it))["Failed"] == ("FailedIndexes", "Job has failed indexes")


@on_loop
async def test_too_many_failed_indexes_end_a_job() -> None:
    async with running() as it:
        spec = {"parallelism": 4, "completions": 4, "completionMode": "Indexed", "backoffLimitPerIndex": 0}
        await begun(it, **spec, maxFailedIndexes=1)
        for pod in (await pods_of(it))[:2]:
            await fail(it, pod)
        assert (await conditions(it))["Failed"][0] == "MaxFailedIndexesExceeded"
        assert await pods_of(it) == []


@on_loop
async def test_a_rule_about_failures_fails_the_job_at_once_or_passes_over_them() -> None:
    rules = [
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
    ]
    async with running() as it:
        await begun(it, backoffLimit=0, podFailurePolicy={"rules": rules})
        [pod] = await pods_of(it)
        await end(it, pod, "Failed", code=1, reason="DisruptionTarget")
        await it.run_for(11)
        [again] = await pods_of(it)
        assert (await it.find(JOBS, "train")).status.failed == 0
        await fail(it, again, 42)
        reason, message = (await conditions(it))["Failed"]
        assert reason == "PodFailurePolicy"
        name = again.metadata.name
        assert message == (
            f"Container ctr for pod default/{name} failed with exit code 42 matching FailJob rule at index 0"
        )


@on_loop
async def test_a_rule_about_successes_completes_the_job_and_the_others_go() -> None:
    async with running() as it:
        policy = {"rules": [{"succeededIndexes": "1-2", "succeededCount": 1}]}
        await begun(it, parallelism=3, completions=3, completionMode="Indexed", successPolicy=policy)
        await end(it, (await pods_of(it))[2])
        assert await pods_of(it) == []
        assert (await conditions(it))["Complete"] == ("SuccessPolicy", "Matched rules at index 0")


@on_loop
async def test_a_suspended_job_has_no_pods_and_begins_anew_when_it_goes_on() -> None:
    async with running() as it:
        await begun(it, suspend=True, activeDeadlineSeconds=10)
        assert await pods_of(it) == []
        assert await conditions(it) == {"Suspended": ("JobSuspended", "Job suspended")}
        assert (await it.find(JOBS, "train")).status.start_time is None
        await it.run_for(100)
        await it.client.patch_named(JOBS, "train", {"spec": {"suspend": False}}, namespace="default")
        await it.run_for(5)
        assert len(await pods_of(it)) == 1
        assert await conditions(it) == {}
        await it.client.patch_named(JOBS, "train", {"spec": {"suspend": True}}, namespace="default")
        await it.run_for(1)
        assert await pods_of(it) == []
        assert (await it.find(JOBS, "train")).status.failed == 1
        reasons = {each.reason for each in await it.all(EVENTS)}
        assert {"Suspended", "Resumed", "SuccessfulDelete"} <= reasons


@on_loop
async def test_work_without_a_number_of_completions_is_done_with_the_last_pod() -> None:
    async with running() as it:
        await begun(it, parallelism=2)
        first, second = await pods_of(it)
        await end(it, first)
        assert [pod.metadata.name for pod in await pods_of(it)] == [second.metadata.name]
        assert await conditions(it) == {}
        await end(it, second)
        assert "Complete" in await conditions(it)


@on_loop
async def test_a_pod_that_is_deleted_counts_as_failed_and_is_replaced() -> None:
    async with running() as it:
        await begun(it)
        [pod] = await pods_of(it)
        await it.delete(PODS, pod.metadata.name)
        await it.run_for(12)
        [again] = await pods_of(it)
        assert again.metadata.name != pod.metadata.name
        assert (await it.find(JOBS, "train")).status.failed == 1


@on_loop
async def test_a_finished_job_goes_with_its_pods_when_its_time_is_over() -> None:
    async with running() as it:
        await begun(it, ttlSecondsAfterFinished=60)
        await end(it, (await pods_of(it))[0])
        await it.run_for(55)
        assert await it.find(JOBS, "train") is not None
        await it.run_for(10)
        assert await it.find(JOBS, "train") is None
        assert await it.all(PODS) == []


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
@on_loop
async def test_a_deleted_job_lets_its_pods_go(propagation: str) -> None:
    async with running() as it:
        await begun(it, parallelism=2, completions=2)
        await it.delete(JOBS, "train", propagation=propagation)
        await it.run_for(5)
        assert await it.find(JOBS, "train") is None
        assert await it.all(PODS) == []


@on_loop
async def test_orphans_of_a_deleted_job_are_held_by_nobody() -> None:
    async with running() as it:
        await begun(it)
        await it.delete(JOBS, "train", propagation="Orphan")
        await it.run_for(5)
        [pod] = await it.all(PODS)
        assert (pod.metadata.finalizers, pod.metadata.owner_references) == ((), ())


@on_loop
async def test_a_job_adopts_pods_that_match_its_own_selector() -> None:
    async with running() as it:
        await it.create(any_pod("stray", labels={"app": "train"}))
        await begun(it, manualSelector=True, selector={"matchLabels": {"app": "train"}})
        adopted = await it.find(PODS, "stray")
        assert adopted.metadata.controller is not None
        assert TRACKING in adopted.metadata.finalizers
        assert len(await it.all(PODS)) == 1


@on_loop
async def test_pods_that_cannot_be_made_are_told_of() -> None:
    async with running() as it:
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"}}
        await it.create({**quota, "spec": {"hard": {"pods": "0"}}})
        await it.set_status(QUOTAS, "q", {"hard": {"pods": "0"}, "used": {"pods": "0"}})
        await begun(it)
        assert await pods_of(it) == []
        assert "FailedCreate" in {each.reason for each in await it.all(EVENTS)}
        assert await conditions(it) == {}


@on_loop
async def test_a_job_of_another_manager_is_left_alone() -> None:
    async with running() as it:
        await begun(it, managedBy="example.com/queue")
        assert await it.all(PODS) == []


STATUS = "jobs/train/status"
"""A count that meets a conflict is worked out again."""


@pytest.mark.parametrize(
    ("scenario", "least"),
    [(a_job_succeeds_in_the_end, 24), (an_indexed_job_fails, 18), (a_job_is_suspended_and_dropped, 25)],
    ids=["succeeds", "fails", "suspended"],
)
def test_a_crash_after_any_write_counts_no_pod_twice_and_loses_none(scenario: Scenario, least: int) -> None:
    assert check_every_crash(scenario, MAKERS, [JOBS, PODS], exact=False, at_most=True, apart=(STATUS,)) >= least
