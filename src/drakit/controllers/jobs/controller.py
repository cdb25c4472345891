"""Jobs: pods that run until enough of them have succeeded, or too many have failed.

In:  jobs and pods.
Out: pods made from the template or deleted, each counted once; status, conditions and events.

The plan is made from the cache. If anything is to be done, it is made again from what the server has: the cache may not
have seen what this process, or the one before it, did last.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any

from drakit.api import Pod
from drakit.api.objects.batch import Job
from drakit.api.objects.partial import Partial
from drakit.base.errors import DrakitError, Retryable
from drakit.base.labels import LabelMatcher, from_struct
from drakit.client import JOBS, PODS, STRATEGIC, Key, V
from drakit.client.events import NORMAL, WARNING
from drakit.controllers.context import ControllerContext
from drakit.controllers.jobs.ends import is_over
from drakit.controllers.jobs.plan import JobPlan, plan
from drakit.controllers.jobs.pods import TRACKING, OneJob, OnePod, ended_at, has_failed, is_tracked, new_pod, owner_of
from drakit.informers import Informer, Result, by_controller

log = logging.getLogger("drakit.controllers")

NAME = "job"
COMPONENT = "job-controller"
BATCH = 0.2
"""Seconds for which changes of pods are collected: pods of one job tend to end together."""
_PASSES = 12
_OWN_MANAGER = (None, "", "kubernetes.io/job-controller")


class JobController:
    def __init__(self, context: ControllerContext, *, workers: int = 2) -> None:
        self._client = context.client_of(COMPONENT)
        self._clock = context.clock
        self._recorder = context.recorder(self._client, COMPONENT)
        self._jobs: Informer[OneJob] = context.informers.of(JOBS)
        self._pods: Informer[OnePod] = context.informers.of(PODS)
        self._pods.add_index("controller", by_controller)
        self._pods.add_index("without controller", _without_controller)
        self.loop = context.loop(NAME, self.reconcile, workers=workers)
        self.orphans = context.loop("job-orphan-pods", self.reconcile_orphan)
        self.loops = (self.loop, self.orphans)
        self._failures: dict[str, dict[str, datetime]] = {}
        self._jobs.enqueue(self.loop.queue.add)
        self._jobs.subscribe(self._look_after_pods)
        self._pods.enqueue(self._soon, self._jobs_of)
        self._pods.subscribe(self._look_after_orphan)

    def _soon(self, key: Key) -> None:
        self.loop.queue.add_after(key, BATCH)

    def _jobs_of(self, pod: OnePod) -> list[Key]:
        metadata = pod.view.metadata
        owner = metadata.controller
        if owner is not None:
            return [Key(metadata.namespace, owner.name)] if owner.kind == "Job" else []
        found = self._jobs.cache.all(metadata.namespace) if metadata.labels else []
        return [Key(metadata.namespace, each.view.metadata.name) for each in found if _selects(each.view, pod)]

    def _look_after_pods(self, old: OneJob | None, new: OneJob | None) -> None:
        """Pods of a job that is gone, or over, are held by nobody."""
        if new is None and old is not None:
            self._failures.pop(old.view.metadata.uid, None)
            for pod in self._pods.by("controller", old.view.metadata.uid):
                self._look_after_orphan(None, pod)

    def _look_after_orphan(self, _old: OnePod | None, new: OnePod | None) -> None:
        if new is not None and is_tracked(new):
            owner = new.view.metadata.controller
            if owner is None or owner.kind == "Job":
                self.orphans.queue.add(Key(new.view.metadata.namespace, new.view.metadata.name))

    async def reconcile_orphan(self, key: Key) -> Result:
        """Let a pod go whose job does not exist any more, or has ended."""
        pod = self._pods.cache.get(key)
        if pod is None or not is_tracked(pod):
            return Result.done()
        owner = pod.view.metadata.controller
        if owner is None and self._jobs_of(pod):
            return Result.done()  # one of these adopts it
        job = self._jobs.cache.get(Key(key.namespace, owner.name)) if owner is not None else None
        if job is not None and owner is not None and job.view.metadata.uid == owner.uid and not is_over(job.view):
            return Result.done()
        if owner is not None and job is None:
            stored = await self._client.find(JOBS, owner.name, namespace=key.namespace)
            if stored is not None and stored.view.metadata.uid == owner.uid:
                return Result.retry()  # the pod was seen before its job
        await self._release(pod)
        return Result.done()

    async def reconcile(self, key: Key) -> Result:
        job = self._jobs.cache.get(key)
        if job is None or job.view.spec.managed_by not in _OWN_MANAGER:
            return Result.done()
        theirs = self._pods.by("controller", job.view.metadata.uid)
        first = self._plan(job, theirs)
        free = self._pods.by("without controller", key.namespace)
        if not _acts(first) and not self._strays(job, [*theirs, *free]):
            return _later(first)
        return await self._act(key, job.view.metadata.uid)

    def _plan(self, job: OneJob, pods: list[OnePod]) -> JobPlan:
        """Failures are remembered as long as the job runs: the next pod must wait also if the failed one is gone."""
        uid = job.view.metadata.uid
        if is_over(job.view):
            self._failures.pop(uid, None)
            return plan(job, pods, self._clock.now())
        known = self._failures.setdefault(uid, {})
        known.update({pod.view.metadata.uid: ended_at(pod) for pod in pods if has_failed(pod, job.view)})
        return plan(job, pods, self._clock.now(), known)

    async def _act(self, key: Key, uid: str) -> Result:
        """Steps, each from the state that the one before it left."""
        # Reads are cheap and pods are not: each step is planned from what the server has, never from the cache.
        failed = False
        for _ in range(_PASSES):
            job = await self._client.find(JOBS, key.name, namespace=key.namespace)
            if job is None or job.view.metadata.uid != uid:
                return Result.done()
            pods = await self._claim(job)
            step = self._plan(job, pods)
            if not _acts(step) or (failed and step.make and step.status is None and not step.remove):
                return Result.retry() if failed else _later(step)
            failed = not await self._do(job, step)
        return Result.retry()

    async def _do(self, job: OneJob, step: JobPlan) -> bool:
        """One kind of write of a plan; false if pods could not be made."""
        # The status comes first: what has ended is listed before more is made of it.
        if step.status is not None:
            for event in step.events:
                await self._say(job, event.reason, event.message, event.type)
            await self._client.update({**job.document, "status": step.status}, subresource="status")
        elif step.remove:
            for pod in step.remove:
                await self._client.delete_object(pod)
                await self._say(job, "SuccessfulDelete", f"Deleted pod: {pod.view.metadata.name}", NORMAL)
        elif step.make:
            return await self._make(job, step.make)
        else:
            for pod in step.release:
                await self._release(pod)
        return True

    async def _make(self, job: OneJob, wanted: list[tuple[int | None, int | None]]) -> bool:
        for index, failures in wanted:
            try:
                made = await self._client.create(new_pod(job, index, failures))
            except Retryable:
                raise
            except DrakitError as error:
                await self._say(job, "FailedCreate", f"Error creating: {error}", WARNING)
                return False
            pod = made if type(made) is Partial else Partial.of(Pod, made)
            log.log(V[2], "job %s: made pod %s", job.view.metadata.name, pod.view.metadata.name)
            await self._say(job, "SuccessfulCreate", f"Created pod: {pod.view.metadata.name}", NORMAL)
        return True

    async def _claim(self, job: OneJob) -> list[OnePod]:
        """The job's pods at the server, after it took those that match and let those go that do not."""
        pods = list(await self._client.list(PODS, namespace=job.view.metadata.namespace))
        owned = [pod for pod in pods if _owns(job.view, pod)]
        for pod in self._strays(job, pods):
            document = pod.document["metadata"]
            if pod in owned:
                owned.remove(pod)
                left = [each for each in document.get("ownerReferences") or () if each["uid"] != job.view.metadata.uid]
                finalizers = [each for each in document.get("finalizers") or () if each != TRACKING]
            else:
                left = [*(document.get("ownerReferences") or ()), owner_of(job)]
                finalizers = [*(document.get("finalizers") or ()), TRACKING]
            change = {"metadata": {"ownerReferences": left or None, "finalizers": finalizers or None}}
            changed = await self._client.patch(pod, change, versioned=True)
            owned += [changed] if _owns(job.view, changed) else []
        return owned

    def _strays(self, job: OneJob, pods: list[OnePod]) -> list[OnePod]:
        """Pods that match and have no owner, and pods that it owns and that do not match."""
        if job.view.metadata.deletion_timestamp is not None or is_over(job.view):
            return []
        selector = _selector(job.view)
        if selector is None:
            return []
        found = []
        for pod in pods:
            fits = selector.matches(pod.view.metadata.labels)
            free = pod.view.metadata.controller is None and pod.view.metadata.deletion_timestamp is None
            if (_owns(job.view, pod) and not fits) or (fits and free and not pod.view.is_terminal):
                found.append(pod)
        return found

    async def _release(self, pod: OnePod) -> None:
        change = {"metadata": {"$deleteFromPrimitiveList/finalizers": [TRACKING]}}
        await self._client.patch(pod, change, kind=STRATEGIC)

    async def _say(self, job: OneJob, reason: str, message: str, type_: str) -> None:
        await self._recorder.tell("Job", "batch/v1", job, reason, message, type_=type_)


def _without_controller(pod: OnePod) -> list[str]:
    """Index function: the namespace of a pod that nobody manages."""
    metadata = pod.view.metadata
    return [metadata.namespace] if metadata.controller is None else []


def _acts(step: JobPlan) -> Any:
    return step.remove or step.make or step.status is not None or step.release


def _later(step: JobPlan) -> Result:
    return Result.done() if step.wait is None else Result.after(max(step.wait.total_seconds(), 0.0))


def _owns(job: Job, pod: OnePod) -> bool:
    owner = pod.view.metadata.controller
    return owner is not None and owner.uid == job.metadata.uid


def _selector(job: Job) -> LabelMatcher | None:
    return from_struct(job.spec.selector) if job.spec.selector is not None else None


def _selects(job: Job, pod: OnePod) -> bool:
    selector = _selector(job)
    return selector is not None and selector.matches(pod.view.metadata.labels)
