"""Cron jobs: a job whenever it is time.

In:  cron jobs and jobs.
Out: jobs, named by the minute that they are for, so that none is made twice; old ones deleted; the status.
"""

from __future__ import annotations

import logging
from datetime import datetime

from drakit.api.objects.batch import CronJob, Job
from drakit.api.objects.partial import Partial
from drakit.api.objects.plain import Plain
from drakit.api.text.times import format_time
from drakit.base.cron import CronError
from drakit.base.errors import DrakitError, Retryable
from drakit.client import CRON_JOBS, JOBS, AlreadyExists, Key, V
from drakit.client.events import NORMAL, WARNING
from drakit.controllers.context import ControllerContext
from drakit.controllers.cronjobs.times import beginning, last_due, schedule_of
from drakit.controllers.jobs.ends import COMPLETE, ended_since, is_over
from drakit.informers import Informer, Result, by_controller

log = logging.getLogger("drakit.controllers")

COMPONENT = "cronjob-controller"
_STAMP = "batch.kubernetes.io/cronjob-scheduled-timestamp"
OneCron = Partial[CronJob]
OneJob = Partial[Job]


class CronJobController:
    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client_of(COMPONENT)
        self._clock = context.clock
        self._recorder = context.recorder(self._client, COMPONENT)
        self._crons: Informer[OneCron] = context.informers.of(CRON_JOBS)
        self._jobs: Informer[OneJob] = context.informers.of(JOBS)
        self._jobs.add_index("controller", by_controller)
        self.loop = context.loop("cronjob", self.reconcile)
        self.loops = (self.loop,)
        self._crons.enqueue(self.loop.queue.add)
        self._jobs.enqueue(self.loop.queue.add, _cron_of)

    async def reconcile(self, key: Key) -> Result:
        cron = self._crons.cache.get(key)
        if cron is None or cron.view.metadata.deletion_timestamp is not None:
            return Result.done()
        jobs = self._jobs.by("controller", cron.view.metadata.uid)
        cron = await self._tell(cron, jobs)
        await self._forget_old(cron, jobs)
        if cron.view.spec.suspend:
            return Result.done()
        try:
            schedule, zone = schedule_of(cron.view)
        except CronError as error:
            await self._say(cron, "UnparseableSchedule", f"unparseable schedule: {error}", WARNING)
            return Result.done()
        now = self._clock.now()
        due = last_due(schedule, zone, beginning(cron.view, now), now)
        if due is not None:
            await self._start(cron, [job for job in jobs if not is_over(job.view)], due)
        following = schedule.after(now, zone)
        return Result.done() if following is None else Result.after((following - now).total_seconds())

    async def _tell(self, cron: OneCron, jobs: list[OneJob]) -> OneCron:
        """Write which jobs run, and when one last succeeded."""
        status = dict(cron.document.get("status") or {})
        active = [_reference(job) for job in jobs if not is_over(job.view)]
        known = {each["uid"] for each in status.get("active") or ()}
        for job in jobs:
            # Only jobs that were listed as active: the event is told once, at the write that takes them off the list.
            if is_over(job.view) and job.view.metadata.uid in known:
                kind = "Complete" if _succeeded(job) else "Failed"
                name = job.view.metadata.name
                await self._say(cron, "SawCompletedJob", f"Saw completed job: {name}, condition: {kind}", NORMAL)
        ends = [end for job in jobs if _succeeded(job) and (end := ended_since(job.view)) is not None]
        wanted = {**status, "active": sorted(active, key=lambda each: str(each["name"]))}
        if ends:
            wanted["lastSuccessfulTime"] = max(format_time(max(ends)), status.get("lastSuccessfulTime") or "")
        if not active:
            wanted.pop("active")
        return cron if wanted == status else await self._write(cron, wanted)

    async def _write(self, cron: OneCron, status: Plain) -> OneCron:
        made = await self._client.update({**cron.document, "status": status}, subresource="status")
        return made if type(made) is Partial else Partial.of(CronJob, made)

    async def _forget_old(self, cron: OneCron, jobs: list[OneJob]) -> None:
        spec = cron.view.spec
        for good, limit in ((True, spec.successful_jobs_history_limit), (False, spec.failed_jobs_history_limit)):
            ended = [job for job in jobs if is_over(job.view) and _succeeded(job) is good]
            ended.sort(key=lambda job: (job.view.status.start_time or "", job.view.metadata.name), reverse=True)
            for job in ended[limit:] if limit is not None else ():
                await self._delete(cron, job)

    async def _delete(self, cron: OneCron, job: OneJob) -> None:
        await self._client.delete_object(job, propagation="Background")
        await self._say(cron, "SuccessfulDelete", f"Deleted job {job.view.metadata.name}", NORMAL)

    async def _start(self, cron: OneCron, running: list[OneJob], due: datetime) -> None:
        policy = cron.view.spec.concurrency_policy
        if running and policy == "Forbid":
            why = "Not starting job because prior execution is running and concurrency policy is Forbid"
            await self._say(cron, "JobAlreadyActive", why, NORMAL)
            return
        if policy == "Replace":
            for job in running:
                await self._delete(cron, job)
        made = _job(cron, due)
        name = made["metadata"]["name"]
        try:
            await self._client.create(made)
        except AlreadyExists:
            pass  # made before a crash, and not told yet
        except Retryable:
            raise
        except DrakitError as error:
            await self._say(cron, "FailedCreate", f"Error creating job: {error}", WARNING)
            raise
        log.log(V[2], "cron job %s: made job %s", cron.view.metadata.name, name)
        await self._say(cron, "SuccessfulCreate", f"Created job {name}", NORMAL)
        await self._write(cron, {**(cron.document.get("status") or {}), "lastScheduleTime": format_time(due)})

    async def _say(self, cron: OneCron, reason: str, message: str, type_: str) -> None:
        await self._recorder.tell("CronJob", "batch/v1", cron, reason, message, type_=type_)


def _cron_of(job: OneJob) -> list[Key]:
    owner = job.view.metadata.controller
    return [Key(job.view.metadata.namespace, owner.name)] if owner is not None and owner.kind == "CronJob" else []


def _succeeded(job: OneJob) -> bool:
    return any(each.type == COMPLETE and each.status == "True" for each in job.view.status.conditions)


def _reference(job: OneJob) -> Plain:
    metadata = job.view.metadata
    return {
        "apiVersion": "batch/v1", "kind": "Job", "namespace": metadata.namespace, "name": metadata.name,
        "uid": metadata.uid,
    }  # fmt: skip


def _job(cron: OneCron, due: datetime) -> Plain:
    template, metadata = cron.document["spec"]["jobTemplate"], cron.view.metadata
    about = template.get("metadata") or {}
    zone = schedule_of(cron.view)[1]
    owner = {
        "apiVersion": "batch/v1", "kind": "CronJob", "name": metadata.name, "uid": metadata.uid,
        "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip
    stamp = due.astimezone(zone).isoformat(timespec="seconds").replace("+00:00", "Z")
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            # The minute is in the name: the same start cannot happen twice.
            "name": f"{metadata.name}-{int(due.timestamp()) // 60}",
            "namespace": metadata.namespace,
            "labels": about.get("labels") or {},
            "annotations": {**(about.get("annotations") or {}), _STAMP: stamp},
            "ownerReferences": [owner],
        },
        "spec": template["spec"],
    }
