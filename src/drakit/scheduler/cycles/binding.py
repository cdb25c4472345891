"""From a placement in memory to a pod that is bound, apart from the attempts at other pods.

In:  a pod that is assumed on its node.
Out: what plugins write before (claims), the binding, an event; or everything undone, the pods that what was freed may
     help woken, and the pod queued again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

import msgspec

from drakit.api.objects.pods import Pod
from drakit.base.clock import Clock
from drakit.base.errors import DrakitError
from drakit.client import Client, V
from drakit.client.events import NORMAL
from drakit.scheduler.cycles.conditions import nominated
from drakit.scheduler.cycles.diagnosis import SchedulingRefusal, failed, of_chosen
from drakit.scheduler.cycles.failures import Failures, patch_status
from drakit.scheduler.framework import Action, ClusterEvent, Code, CycleState, EventResource, PluginStatus, Profile
from drakit.scheduler.metrics import AttemptResult
from drakit.scheduler.metrics.attempts import SchedulerMetrics
from drakit.scheduler.metrics.timing import Laps
from drakit.scheduler.queue import QueuedPod, SchedulingQueue
from drakit.scheduler.writers import Events

log = logging.getLogger("drakit.scheduler")

BindStep = Callable[[CycleState, Pod, str], Awaitable[PluginStatus]]
POD_GONE = ClusterEvent(EventResource.POD, Action.DELETE)


class BindingJob(msgspec.Struct, frozen=True):
    """A pod whose binding is under way; `began` is when its attempt did."""

    profile: Profile
    queued: QueuedPod
    state: CycleState
    node: str
    began: float

    @property
    def pod(self) -> Pod:
        return self.state.assumed

    @property
    def name(self) -> str:
        return f"{self.pod.metadata.namespace}/{self.pod.metadata.name}"


class Bindings:
    """Invariant: `_tasks` are the bindings that are under way; `_waiting` are pods of those that wait for somebody."""

    def __init__(
        self,
        client: Client,
        queue: SchedulingQueue,
        failures: Failures,
        *,
        clock: Clock,
        metrics: SchedulerMetrics,
        events: Events,
    ) -> None:
        self._client = client
        self._queue = queue
        self._failures = failures
        self._clock = clock
        self._metrics = metrics
        self._events = events
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: set[str] = set()

    def start(self, job: BindingJob) -> None:
        task = asyncio.create_task(self._run(job), name=f"binding of {job.name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def __len__(self) -> int:
        return len(self._tasks)

    async def cancel(self) -> None:
        """End all at once, in the middle of whatever is under way: what was written is found at the next start."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def finished(self) -> None:
        while self._tasks:
            await asyncio.wait(list(self._tasks))

    async def _run(self, job: BindingJob) -> None:
        try:
            refusal = await self._bind(job)
        except Exception as error:
            log.exception("pod %s: the binding failed", job.name)
            refusal = failed(PluginStatus.failed(error))
        finally:
            self._waiting.discard(job.queued.uid)
        if refusal is None:
            self._bound(job)
        else:
            await self._undo(job, refusal)

    async def _bind(self, job: BindingJob) -> SchedulingRefusal | None:
        if any(each.waits(job.state, job.pod, job.node) for each in job.profile.waits):
            self._queue.done(job.queued.uid)  # what happens in so long a time need not be kept for it
            self._waiting.add(job.queued.uid)
            self._events.later(job.pod, partial(self._nominate, job))
        for plugin in job.profile.pre_bind:
            refusal = await self._step(job, plugin.name, plugin.pre_bind, "PreBind")
            if refusal is not None:
                return refusal
        for binder in job.profile.bind:
            refusal = await self._step(job, binder.name, binder.bind, "Bind")
            if refusal is None:
                return None
            # SKIP of a Bind plugin means: not mine, ask the next binder.
            if refusal.status.code is not Code.SKIP:
                return refusal
        return failed(PluginStatus.failed(f"no plugin binds pod {job.name}"))

    async def _step(self, job: BindingJob, plugin: str, write: BindStep, point: str) -> SchedulingRefusal | None:
        laps = Laps(self._clock, self._metrics, job.profile.name)
        try:
            status = await write(job.state, job.pod, job.node)
        except DrakitError as error:
            status = PluginStatus.failed(error)
        laps.end(point, status.code)
        if status.ok or (status.code is Code.SKIP and point == "PreBind"):
            return None
        if status.code is Code.SKIP:
            return SchedulingRefusal(status=status, message="")
        if status.is_rejected:
            return of_chosen(status.by(plugin), "")
        message = f'running {point} plugin "{plugin}": {status.message}'
        return failed(PluginStatus(Code.ERROR, (message,), error=status.error))

    async def _nominate(self, job: BindingJob) -> None:
        """Write `nominatedNodeName` while PreBind waits for others, after the condition of the attempt before."""
        found = self._failures.current(job.state.pod) if job.queued.uid in self._waiting else None
        patch = nominated(found.view, job.node) if found is not None else None
        if found is not None and patch is not None:
            await patch_status(self._client, found, patch)

    def _bound(self, job: BindingJob) -> None:
        self._queue.done(job.queued.uid)
        log.log(V[2], "pod %s is bound to node %s", job.name, job.node)
        self._events.record(job.pod, NORMAL, "Scheduled", f"Successfully assigned {job.name} to {job.node}")
        now = self._clock.monotonic()
        self._metrics.attempted(AttemptResult.SCHEDULED, job.profile.name, now - job.began)
        since = job.queued.first_active
        self._metrics.bound(job.queued.attempts, now - (since if since is not None else job.began))

    async def _undo(self, job: BindingJob, refusal: SchedulingRefusal) -> None:
        await self._failures.give_back(job.profile, job.state, job.node)
        # Others are woken first. The pod itself is tried again after its backoff anyway.
        if refusal.is_error:
            self._queue.move(POD_GONE, job.pod, None)
        result = AttemptResult.ERROR if refusal.is_error else AttemptResult.UNSCHEDULABLE
        self._metrics.attempted(result, job.profile.name, self._clock.monotonic() - job.began)
        self._failures.put_back(job.queued, job.state.pod, refusal)
        if not refusal.is_error:
            # After it is back, and for others: what it gave back itself does not help it.
            self._queue.move(POD_GONE, job.pod, None, exclude=job.queued.uid)
