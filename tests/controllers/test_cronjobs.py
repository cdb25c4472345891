"""Cron jobs: a job whenever it is time, and never twice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from drakit.client import CRON_JOBS, EVENTS, JOBS
from drakit.controllers.cronjobs import CronJobController
from drakit.controllers.garbage import GarbageCollector
from tests.builders.cluster import Cluster, cluster, on_loop
from tests.builders.documents import Plain
from tests.controllers.jobs import job
from tests.scenarios.crashes import check_every_crash

MAKERS = (CronJobController, GarbageCollector)


def cron(schedule: str = "*/10 * * * *", **spec: Any) -> Plain:
    return {
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick", "namespace": "default"},
        "spec": {"schedule": schedule, "jobTemplate": {"spec": job()["spec"]}, **spec},
    }  # fmt: skip


@asynccontextmanager
async def running() -> AsyncIterator[Cluster]:
    async with cluster() as made:
        await made.start(MAKERS)
        yield made


async def names(it: Cluster) -> list[str]:
    return sorted(each.metadata.name for each in await it.all(JOBS))


async def finish(it: Cluster, name: str, kind: str = "Complete") -> None:
    now = f"{it.clock.now():%Y-%m-%dT%H:%M:%SZ}"
    said = {"type": kind, "status": "True", "lastTransitionTime": now, "lastProbeTime": now}
    await it.set_status(JOBS, name, {"startTime": now, "conditions": [said]})
    await it.run_for(1)


@on_loop
async def test_a_job_is_made_when_it_is_time_and_not_before() -> None:
    async with running() as it:
        await it.create(cron())
        await it.run_for(590)
        assert await names(it) == []
        await it.run_for(20)
        [made] = await it.all(JOBS)
        assert made.metadata.name == f"tick-{int(it.clock.now().timestamp()) // 600 * 10}"
        assert made.metadata.controller is not None
        assert made.metadata.annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"] == "2026-01-01T00:10:00Z"
        stored = await it.client.get(CRON_JOBS, "tick", namespace="default")
        assert stored.document["status"]["lastScheduleTime"] == "2026-01-01T00:10:00Z"
        assert [each["name"] for each in stored.document["status"]["active"]] == [made.metadata.name]
        await it.run_for(600)
        assert len(await names(it)) == 2


@on_loop
async def test_finished_jobs_are_told_of_and_old_ones_go() -> None:
    async with running() as it:
        await it.create(cron(successfulJobsHistoryLimit=1, failedJobsHistoryLimit=0))
        for kind in ("Complete", "Failed", "Complete"):
            await it.run_for(605)
            await finish(it, (await names(it))[-1], kind)
        assert len(await names(it)) == 1
        stored = await it.client.get(CRON_JOBS, "tick", namespace="default")
        assert "active" not in stored.document["status"]
        assert stored.document["status"]["lastSuccessfulTime"]
        assert {"SawCompletedJob", "SuccessfulDelete"} <= {each.reason for each in await it.all(EVENTS)}


@on_loop
async def test_a_job_that_still_runs_is_waited_for_or_replaced() -> None:
    async with running() as it:
        await it.create(cron(concurrencyPolicy="Forbid"))
        await it.run_for(1300)
        [first] = await names(it)
        assert "JobAlreadyActive" in {each.reason for each in await it.all(EVENTS)}
        await it.client.patch_named(CRON_JOBS, "tick", {"spec": {"concurrencyPolicy": "Replace"}}, namespace="default")
        await it.run_for(605)
        [second] = await names(it)
        assert second != first


@on_loop
async def test_a_suspended_one_makes_nothing_and_one_that_is_late_gives_up() -> None:
    async with running() as it:
        await it.create(cron(suspend=True, startingDeadlineSeconds=60))
        await it.run_for(1000)
        assert await names(it) == []
        await it.client.patch_named(CRON_JOBS, "tick", {"spec": {"suspend": False}}, namespace="default")
        await it.run_for(10)
        assert await names(it) == []  # the last time was 400 seconds ago
        await it.run_for(200)
        assert len(await names(it)) == 1


@on_loop
async def test_times_that_were_missed_are_made_up_for_once() -> None:
    async with cluster() as it:
        await it.create(cron("* * * * *"))
        await it.advance(3600 * 30)
        await it.start(MAKERS)
        await it.run_for(1)
        assert len(await names(it)) == 1


async def two_are_made(it: Cluster) -> None:
    await it.create(cron(successfulJobsHistoryLimit=0))
    await it.run_for(605)
    await finish(it, (await names(it))[0])
    await it.run_for(600)


def test_a_crash_after_any_write_makes_no_job_twice() -> None:
    assert (
        check_every_crash(two_are_made, MAKERS, [CRON_JOBS, JOBS], exact=False, at_most=True, apart=("/jobs",), lost=1)
        >= 11
    )
