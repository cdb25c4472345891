"""Evict pods from tainted devices.

In:  pods that `state` reports as affected by a taint.
Out: at the time that `rules` gives, an event, the condition DisruptionTarget, and the pod deleted; not faster than
     the rate limit allows. Rules are told which of their pods went.
"""

from __future__ import annotations

import logging
from collections import Counter

from drakit.api import Pod
from drakit.api.objects.partial import Partial
from drakit.client import Key, V
from drakit.client.events import NORMAL
from drakit.controllers.context import ControllerContext
from drakit.controllers.disruption import mark_disrupted
from drakit.controllers.eviction.deadlines import Eviction
from drakit.controllers.eviction.metrics import EvictionMetrics
from drakit.controllers.eviction.rules import RuleStatus
from drakit.controllers.eviction.state import EvictionState
from drakit.informers import Bucket, Controller, Result

log = logging.getLogger("drakit.controllers")

NAME = "device_taint_eviction"
COMPONENT = "device-taint-eviction-controller"
PER_SECOND, BURST = 200.0, 200


class DeviceTaintEviction:
    def __init__(
        self, context: ControllerContext, *, workers: int = 8, per_second: float = PER_SECOND, burst: int = BURST
    ) -> None:
        self._client = context.client_of(COMPONENT)
        self._clock = context.clock
        self._recorder = context.recorder(self._client, COMPONENT)
        self._metrics = EvictionMetrics(context.registry)
        self._bucket = Bucket(context.clock, rate=per_second, burst=burst)
        self._evicted: Counter[str] = Counter()  # by uid of the rule
        self._going: set[str] = set()  # uids of pods whose deletion the cache has not seen yet
        self.loop = context.loop(NAME, self.reconcile, workers=workers)
        self._known = EvictionState(context, self.loop.queue.add)
        self._status = RuleStatus(context, self._client, self._known, self._evicted)
        self.loops: tuple[Controller[Key], ...] = (self.loop, self._status.loop)
        if not context.gates.enabled("DRADeviceTaints"):
            self.loops = ()
            self.loop.queue.close(drop=True)  # nobody takes anything from it
        self._known.pods.on(delete=lambda pod: self._going.discard(pod.view.metadata.uid))

    async def reconcile(self, key: Key) -> Result:
        pod = self._known.pods.cache.get(key)
        due = self._due(pod)
        if pod is None or due is None:
            return Result.done()
        self._status.look_again(due.rules)
        wait = (due.at - self._clock.now()).total_seconds()
        if wait > 0:
            return Result.after(wait)
        if (turn := self._bucket.take()) > 0:
            await self._clock.sleep(turn)
            return await self._evict_if_due(key)
        await self._evict(pod, due)
        return Result.done()

    def _due(self, pod: Partial[Pod] | None) -> Eviction | None:
        if pod is None or pod.view.metadata.uid in self._going:
            return None
        return self._known.judge(pod.view)

    async def _evict_if_due(self, key: Key) -> Result:
        """Check again after waiting for the rate limit: the taint may be gone."""
        pod = self._known.pods.cache.get(key)
        due = self._due(pod)
        if pod is not None and due is not None and due.at <= self._clock.now():
            await self._evict(pod, due)
        return Result.done()

    async def _evict(self, pod: Partial[Pod], due: Eviction) -> None:
        log.log(V[2], "pod %s/%s: evicted from tainted devices", pod.view.metadata.namespace, pod.view.metadata.name)
        await self._recorder.tell("Pod", "v1", pod, "DeviceTaintManagerEviction", "Marking for deletion", type_=NORMAL)
        message = "Device Taint manager: deleting due to NoExecute taint"
        await mark_disrupted(self._client, self._clock, pod, "DeletionByDeviceTaintManager", message)
        await self._delete(pod)
        self._metrics.deletions.inc()
        self._metrics.latency.observe(max((self._clock.now() - due.at).total_seconds(), 0.0))
        for name in due.rules:
            rule = self._known.inventory.rules.get(name)
            if rule is not None:
                self._evicted[rule.metadata.uid] += 1
        self._status.look_again(due.rules)

    async def _delete(self, pod: Partial[Pod]) -> None:
        """Mark the pod as going before the request is sent: the cache may see its end before the answer."""
        uid = pod.view.metadata.uid
        self._going.add(uid)
        try:
            await self._client.delete_object(pod)
        except BaseException:
            self._going.discard(uid)
            raise
