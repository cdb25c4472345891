"""Failed attempts: what happens to a pod that was not placed or not bound.

In:  a refusal.
Out: what was reserved is given back; plugins that can do something about it are asked; the pod is back in the queue
     with the plugins that an event must convince; an event and a condition say why, in upstream's words.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from drakit.api.objects.partial import Partial
from drakit.api.objects.pods import Pod
from drakit.base.clock import Clock
from drakit.base.errors import DrakitError
from drakit.client import PODS, STRATEGIC, Client, Conflict, Key, NotFound, V
from drakit.client.events import WARNING
from drakit.informers import Informers
from drakit.scheduler.cache import SchedulerCache
from drakit.scheduler.cache.nominations import Nominations
from drakit.scheduler.cycles.conditions import SCHEDULER_ERROR, UNSCHEDULABLE, StatusPatch, not_scheduled
from drakit.scheduler.cycles.diagnosis import SchedulingRefusal
from drakit.scheduler.framework import Code, CycleState, PluginStatus, Profile, Rejections
from drakit.scheduler.metrics import AttemptResult
from drakit.scheduler.metrics.attempts import SchedulerMetrics
from drakit.scheduler.metrics.timing import Laps
from drakit.scheduler.queue import Part, QueuedPod, SchedulingQueue
from drakit.scheduler.writers import Events, Writers

log = logging.getLogger("drakit.scheduler")

FAILED_SCHEDULING = "FailedScheduling"
TellMore = Callable[[CycleState, Rejections], str]


class Failures:
    def __init__(
        self,
        client: Client,
        informers: Informers,
        cache: SchedulerCache,
        queue: SchedulingQueue,
        nominations: Nominations,
        *,
        clock: Clock,
        metrics: SchedulerMetrics,
        writers: Writers,
        events: Events,
        tell_more: TellMore | None = None,
    ) -> None:
        """`tell_more` gives one more sentence for people, behind what kube-scheduler would say."""
        self._tell_more = tell_more
        self._client = client
        self._pods = informers.of(PODS).cache
        self._cache = cache
        self._queue = queue
        self._nominations = nominations
        self._clock = clock
        self._metrics = metrics
        self._writers = writers
        self._events = events

    async def handle(
        self, profile: Profile, queued: QueuedPod, state: CycleState, refusal: SchedulingRefusal, began: float
    ) -> None:
        if refusal.node:
            await self.give_back(profile, state, refusal.node)
        if refusal.can_help and profile.post_filter:
            refusal = refusal.with_help(await self._ask_for_help(profile, state, refusal))
        if self._tell_more is not None and refusal.can_help:
            refusal = refusal.with_more(self._tell_more(state, refusal.rejections))
        result = AttemptResult.ERROR if refusal.is_error else AttemptResult.UNSCHEDULABLE
        reason = ",".join(sorted(refusal.plugins))
        self._metrics.attempted(result, profile.name, self._clock.monotonic() - began, reason=reason)
        self.put_back(queued, state.pod, refusal)

    async def give_back(self, profile: Profile, state: CycleState, node: str) -> None:
        """Undo the reservation, in memory at once, then what was written; until then the pod is nobody else's."""
        laps = Laps(self._clock, self._metrics, profile.name)
        for plugin in reversed(profile.reserve):
            try:
                await plugin.unreserve(state, state.assumed, node)
            except Exception:
                log.exception("plugin %s could not give back what it had reserved", plugin.name)
        # After plugins have given back: until then the pod counts on its node and nobody is placed there twice.
        self._cache.forget(state.pod.metadata.uid)
        laps.end("Unreserve")

    def put_back(self, queued: QueuedPod, pod: Pod, refusal: SchedulingRefusal) -> None:
        """Queue the pod again, if it is still there and not bound by somebody, and say why."""
        metadata = pod.metadata
        log.log(V[2], "pod %s/%s is not placed: %s", metadata.namespace, metadata.name, refusal.message)
        current = self.current(pod)
        if current is None:
            self._queue.done(metadata.uid)
            return
        if queued.part is Part.IN_FLIGHT:
            again = refusal.is_error or refusal.is_soon
            self._queue.put_back(queued, unschedulable=refusal.plugins, pending=refusal.pending, error=again)
        else:
            self._queue.readmit(queued, current)
        self._events.record(current.view, WARNING, FAILED_SCHEDULING, refusal.message)
        reason = SCHEDULER_ERROR if refusal.is_error else UNSCHEDULABLE
        self._writers.later(metadata.uid, partial(self._write_condition, pod, reason, refusal.message))

    def current(self, pod: Pod) -> Partial[Pod] | None:
        """The pod as informers know it, as long as it is there and not bound."""
        found = self._pods.get(Key(pod.metadata.namespace, pod.metadata.name))
        if found is None or found.view.metadata.uid != pod.metadata.uid or found.view.spec.node_name:
            return None
        return found

    async def _ask_for_help(self, profile: Profile, state: CycleState, refusal: SchedulingRefusal) -> PluginStatus:
        laps = Laps(self._clock, self._metrics, profile.name)
        answer = await ask_for_help(profile, state, refusal)
        laps.end("PostFilter", answer.code)
        return answer

    async def _write_condition(self, pod: Pod, reason: str, message: str) -> None:
        """Patch the pod as the informer has it now: somebody else may have written its status meanwhile."""
        current = self.current(pod)
        if current is None:
            return
        node = self._nominations.node_of(pod.metadata.uid)
        patch = not_scheduled(current.view, reason, message, self._clock.now(), node)
        if patch is not None:
            await patch_status(self._client, current, patch)


async def ask_for_help(profile: Profile, state: CycleState, refusal: SchedulingRefusal) -> PluginStatus:
    """Run PostFilter. The first plugin that acted, or that found nothing can help, decides."""
    reasons: list[str] = []
    for plugin in profile.post_filter:
        try:
            status = await plugin.post_filter(state, state.pod, refusal.rejections)
        except Exception as error:
            log.exception("plugin %s could not help a pod that fits nowhere", plugin.name)
            return PluginStatus.failed(error).by(plugin.name)
        if status.code is not Code.UNSCHEDULABLE:
            return status.by(plugin.name)
        reasons += status.reasons
    return PluginStatus(Code.UNSCHEDULABLE, tuple(reasons))


async def patch_status(client: Client, pod: Partial[Pod], patch: StatusPatch) -> None:
    """Patch a pod's status. A failure is logged and does not stop scheduling."""
    try:
        await client.patch(pod, patch, kind=STRATEGIC, subresource="status")
    except (NotFound, Conflict):
        return  # it is gone, or another pod has its name
    except DrakitError as error:
        metadata = pod.view.metadata
        log.warning("the status of pod %s/%s cannot be written: %s", metadata.namespace, metadata.name, error)
