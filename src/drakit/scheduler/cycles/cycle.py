"""One attempt at a pod, up to the point where it is as good as placed.

In:  a pod from the queue.
Out: a `Placement`: the pod is assumed on its node, what it takes is taken in memory; or a `SchedulingRefusal`.

Nothing here waits: the attempt sees one state of the cluster, and the next attempt sees what this one took.
"""

from __future__ import annotations

import logging
from random import Random

import msgspec

from drakit.base.clock import Clock
from drakit.scheduler.cache import SchedulerCache
from drakit.scheduler.cache.nominations import Nominations
from drakit.scheduler.cycles.choice import choose
from drakit.scheduler.cycles.diagnosis import SchedulingRefusal, failed, of_chosen
from drakit.scheduler.cycles.nodesearch import NodeSearch
from drakit.scheduler.framework import Code, CycleState, NodeInfo, PluginStatus, Profile, on_node
from drakit.scheduler.metrics.attempts import SchedulerMetrics
from drakit.scheduler.metrics.timing import Laps

log = logging.getLogger("drakit.scheduler")


class Placement(msgspec.Struct, frozen=True):
    """`evaluated` nodes were looked at, of which `feasible` would do."""

    node: str
    evaluated: int
    feasible: int


class SchedulingCycle:
    def __init__(
        self,
        cache: SchedulerCache,
        nominations: Nominations,
        *,
        clock: Clock,
        metrics: SchedulerMetrics,
        random: Random,
    ) -> None:
        self._cache = cache
        self._search = NodeSearch(cache, nominations)
        self._clock = clock
        self._metrics = metrics
        self._random = random

    def run(self, profile: Profile, state: CycleState) -> Placement | SchedulingRefusal:
        began = self._clock.monotonic()
        try:
            return self._run(profile, state)
        # A plugin with a bug must not stop the scheduler: the pod is retried after its backoff.
        except Exception as error:
            pod = state.pod.metadata
            log.exception("pod %s/%s: the attempt failed", pod.namespace, pod.name)
            return failed(PluginStatus.failed(error), node=state.assumed.spec.node_name)
        finally:
            self._metrics.algorithm.observe(self._clock.monotonic() - began)

    def _run(self, profile: Profile, state: CycleState) -> Placement | SchedulingRefusal:
        pod = state.pod
        laps = Laps(self._clock, self._metrics, profile.name)
        found = self._search.find(profile, state, pod, laps)
        if isinstance(found, SchedulingRefusal):
            return found
        node = choose(profile, state, pod, found.nodes, self._random)
        laps.end("Score")
        refusal = self._reserve(profile, state, node)
        laps.end("Reserve", refusal.status.code if refusal else Code.SUCCESS)
        if refusal is None:
            refusal = self._permit(profile, state, node)
            laps.end("Permit", refusal.status.code if refusal else Code.SUCCESS)
        return refusal or Placement(node.name, found.evaluated, len(found.nodes))

    def _reserve(self, profile: Profile, state: CycleState, node: NodeInfo) -> SchedulingRefusal | None:
        """Reserve and assume. After a refusal, what was reserved is still to be given back."""
        # Set before plugins reserve: a plugin may replace it, and what it sets counts in the cache.
        state.assumed = on_node(state.pod, node.name)
        for plugin in profile.reserve:
            status = plugin.reserve(state, state.assumed, node)
            if not status.ok:
                return self._refused(status, plugin.name, "Reserve", node.name)
        # From here on the next attempt sees this pod on its node, long before the server knows of it.
        self._cache.assume(state.assumed)
        return None

    def _permit(self, profile: Profile, state: CycleState, node: NodeInfo) -> SchedulingRefusal | None:
        """Ask for leave. After a refusal, what was reserved is still to be given back."""
        for plugin in profile.permit:
            status = plugin.permit(state, state.assumed, node)
            if not status.ok:
                return self._refused(status, plugin.name, "Permit", node.name)
        return None

    def _refused(self, status: PluginStatus, plugin: str, point: str, node: str) -> SchedulingRefusal:
        if status.is_rejected:
            return of_chosen(status.by(plugin), node)
        message = f'running {point} plugin "{plugin}": {status.message}'
        return failed(PluginStatus(Code.ERROR, (message,), error=status.error), node=node)
