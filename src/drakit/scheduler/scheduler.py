"""The scheduler as a whole: one loop that places pods, and what it needs around it.

In:  a client, a clock, gates, a configuration.
Out: pods bound, or told why they wait, until stopped.

Only the loop decides, one pod at a time and without waiting; bindings, events and conditions are written apart. What a
scheduler knows is in the server: another one that starts later finds everything there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any
from uuid import UUID

from prometheus_client import CollectorRegistry

from drakit.api.objects.pods import Pod
from drakit.base.clock import Clock
from drakit.base.gates import FeatureGates
from drakit.client import PODS, Client
from drakit.client.events import WARNING
from drakit.informers import Informers, QueueClosed
from drakit.scheduler.cache import SchedulerCache
from drakit.scheduler.cache.nominations import Nominations
from drakit.scheduler.config import SchedulerConfiguration, default_configuration
from drakit.scheduler.cycles.binding import BindingJob, Bindings
from drakit.scheduler.cycles.cycle import Placement, SchedulingCycle
from drakit.scheduler.cycles.failures import FAILED_SCHEDULING, Failures
from drakit.scheduler.cycles.gatedpods import GatedPods
from drakit.scheduler.dynamicresources import NAME as DYNAMIC_RESOURCES
from drakit.scheduler.dynamicresources.sentences import told_more
from drakit.scheduler.eventhandlers import POD_GONE, EventHandlers
from drakit.scheduler.framework import CycleState, Handle, Unfinished
from drakit.scheduler.gangs.attempts import GroupAttempts
from drakit.scheduler.gangs.conditions import GroupConditions
from drakit.scheduler.metrics.attempts import SchedulerMetrics
from drakit.scheduler.metrics.podgroups import PodGroupMetrics
from drakit.scheduler.metrics.podresources import PodResources
from drakit.scheduler.plugins import MAKERS, Maker, Profiles
from drakit.scheduler.podgroups.groups import Groups, group_key
from drakit.scheduler.preemption.preemption import Preemptions
from drakit.scheduler.queue import QueuedPod, SchedulingQueue
from drakit.scheduler.state import SchedulerState, state_of
from drakit.scheduler.writers import Events, Writers

log = logging.getLogger("drakit.scheduler")

GRACE = 10.0
MEASURED = 0.1
"""The part of attempts of which every call of a plugin is measured."""


class Scheduler:
    """One run of a scheduler; for another run, make another."""

    def __init__(
        self,
        client: Client,
        *,
        clock: Clock | None = None,
        gates: FeatureGates | None = None,
        registry: CollectorRegistry | None = None,
        config: SchedulerConfiguration | None = None,
        random: Random | None = None,
        informers: Informers | None = None,
        makers: Mapping[str, Maker] = MAKERS,
        hints: bool = False,
    ) -> None:
        """`makers` make plugins by name: whoever has plugins of their own adds them there.

        `informers` are those of the process, where other components have some too. With `hints`, events and conditions
        say more than kube-scheduler's: which claim, which request, the most frequent reason, which claim is missing.
        """
        self._clock = clock = clock or client.clock
        self._random = random = random or Random()
        self.registry = registry or CollectorRegistry()
        gates = gates or FeatureGates.defaults()
        config = config or default_configuration(gates)
        self.informers = informers or Informers(client, clock=clock, random=random)
        self.cache = SchedulerCache(count_claims=gates.enabled("DRANodeAllocatableResources"))
        self._metrics = metrics = SchedulerMetrics(self.registry)
        self._writers = Writers()
        self._events = events = Events(client, clock, self._writers)
        self._handle = handle = self._make_handle(client, gates)
        nominations = Nominations(self.cache)
        preemptions = Preemptions(config, handle, self.cache, nominations, metrics)
        self._profiles = Profiles(config, handle, makers, metrics, complete=preemptions.complete)
        self.queue = self._make_queue(config)
        # After the queue is made: a nomination that ends wakes pods.
        nominations.on_end(self._give_up_place)
        handlers = EventHandlers(self.cache, self.queue, self._profiles.names)
        handlers.subscribe(self.informers, self._profiles.interests, gates)
        self.pod_resources = CollectorRegistry()
        """What `/metrics/resources` shows."""
        PodResources(self.pod_resources, self.informers.of(PODS).cache)
        self._cycle = SchedulingCycle(self.cache, nominations, clock=clock, metrics=metrics, random=random)
        self._failures = Failures(
            client,
            self.informers,
            self.cache,
            self.queue,
            nominations,
            clock=clock,
            metrics=metrics,
            writers=self._writers,
            events=events,
            tell_more=partial(told_more, self.cache, clock) if hints else None,
        )
        self._gated = GatedPods(self.queue, DYNAMIC_RESOURCES, clock, events) if hints else None
        self._bindings = Bindings(client, self.queue, self._failures, clock=clock, metrics=metrics, events=events)
        self._groups = self._make_groups(handle) if gates.enabled("GenericWorkload") else None
        self._follow()
        self._synced = asyncio.Event()
        self._stopping = asyncio.Event()

    def _make_handle(self, client: Client, gates: FeatureGates) -> Handle:
        return Handle(
            client,
            self.informers,
            self.cache,
            clock=self._clock,
            gates=gates,
            registry=self.registry,
            random=self._random,
            new_uid=lambda: str(UUID(int=self._random.getrandbits(128), version=4)),
            record=self._events.record,
        )

    def _make_queue(self, config: SchedulerConfiguration) -> SchedulingQueue:
        return SchedulingQueue(
            self._clock,
            interests=self._profiles.interests,
            pre_enqueue=self._profiles.pre_enqueue,
            metrics=self._metrics,
            initial_backoff=config.pod_initial_backoff_seconds,
            max_backoff=config.pod_max_backoff_seconds,
        )

    async def run(self) -> None:
        """Schedule pods until `stop`. Cancelling ends at once, in the middle of what is under way."""
        working = asyncio.ensure_future(self._work())
        stopped = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait((working, stopped), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
        finally:
            await _end((working, stopped))

    async def _work(self) -> None:
        async with self.informers.running():
            self._synced.set()
            doing = [self._place_pods(), self.queue.run(), self._writers.run()]
            if self._gated is not None:
                doing.append(self._gated.run())
            loops = [asyncio.ensure_future(each) for each in doing]
            try:
                await asyncio.gather(*loops)
            finally:
                await _end(loops)
                await self._bindings.cancel()

    async def stop(self) -> None:
        """Place no more pods; what is being bound and written may finish, for some seconds. Then `run` ends."""
        self.queue.close()
        if self._synced.is_set():
            await self._within(GRACE, self._bindings.finished())
            await self._within(GRACE, self._writers.done())
        self._stopping.set()

    async def wait_ready(self) -> None:
        """Wait until caches are filled and pods are being placed."""
        await self._synced.wait()

    def state(self) -> SchedulerState:
        """What it has decided and nobody else knows yet, and how many pods wait."""
        return state_of(self.cache, self._handle, self.queue.pending())

    @property
    def is_synced(self) -> bool:
        return self._synced.is_set()

    @property
    def is_idle(self) -> bool:
        """Whether no pod can be tried, none is being bound, and all there was to say is written."""
        return self.queue.is_idle and not self._bindings and self._writers.is_idle

    # The loop

    async def _place_pods(self) -> None:
        with suppress(QueueClosed):
            while True:
                # Backpressure: a cluster full of pods that do not fit must not pile up conditions without bound.
                await self._writers.room()
                queued = await self.queue.pop()
                try:
                    await self._attempt(queued)
                except Exception:
                    log.exception("%r: trying again", queued)
                    self.queue.put_back(queued, error=True)
                await asyncio.sleep(0)  # bindings and informers have their turn

    async def _attempt(self, queued: QueuedPod, *, patient: bool = True) -> None:
        pod = queued.pod.view
        profile = self._profiles.get(pod.spec.scheduler_name, measured=self._random.random() < MEASURED)
        if profile is None or self._is_done_with(pod):
            self.queue.done(queued.uid)
            return
        if self._groups is not None and (group := group_key(pod)) is not None:
            await self._groups.attempt(profile, queued, group)
            return
        began = self._clock.monotonic()
        state = CycleState(pod, queued.pod.document)
        outcome = self._cycle.run(profile, state)
        if isinstance(outcome, Placement):
            self._bindings.start(BindingJob(profile, queued, state, outcome.node, began))
        elif patient and isinstance(outcome.status.error, Unfinished) and await outcome.status.error.finished():
            # Others wait with it, but only they: meanwhile the loop is free for everything else.
            await self._attempt(queued, patient=False)
        else:
            await self._failures.handle(profile, queued, state, outcome, began)

    def _is_done_with(self, pod: Pod) -> bool:
        """Whether to skip a pod from the queue: it is being deleted, or it is assumed and was updated just before."""
        if pod.metadata.deletion_timestamp:
            name = f"{pod.metadata.namespace}/{pod.metadata.name}"
            self._events.record(pod, WARNING, FAILED_SCHEDULING, f"skip schedule deleting pod: {name}")
            return True
        return self.cache.is_assumed(pod.metadata.uid)

    def _make_groups(self, handle: Handle) -> GroupAttempts:
        return GroupAttempts(
            Groups.shared(handle),
            self.cache,
            self.queue,
            self._cycle,
            self._failures,
            self._bindings,
            GroupConditions(handle.client, self._clock, self._writers),
            is_done_with=self._is_done_with,
            clock=self._clock,
            metrics=self._metrics,
            podgroup_metrics=PodGroupMetrics(self.registry),
            gangs=handle.gates.enabled("GangScheduling"),
        )

    def _give_up_place(self, pod: Pod, freed: bool) -> None:
        """A nomination ended: wake the pods that the freed place may help."""
        if freed:
            self.queue.move(POD_GONE, pod, None, exclude=pod.metadata.uid)

    async def _within(self, seconds: float, doing: Coroutine[Any, Any, None]) -> None:
        tasks = [asyncio.create_task(doing), asyncio.create_task(self._clock.sleep(seconds))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _end(tasks)

    def _follow(self) -> None:
        """Register gauges whose values are read at each scrape."""
        self._metrics.follow_queue(self.queue.pending)
        sizes: dict[str, Callable[[], float]] = {
            "nodes": lambda: len(self.cache),
            "pods": lambda: self.cache.pod_count,
            "assumed_pods": lambda: self.cache.assumed_count,
        }
        self._metrics.follow_cache(sizes)


async def _end(tasks: Iterable[asyncio.Future[Any]]) -> None:
    ending = list(tasks)
    for task in ending:
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)
