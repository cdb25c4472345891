"""Pods that may not enter the queue because a claim is missing: people are told of them.

In:  the pods that a plugin keeps out, looked at every few seconds.
Out: an event for each that is still out at the next look, once per reason.

kube-scheduler says nothing: such a pod is never tried. Pods whose claims are just being made are let in meanwhile.
"""

from __future__ import annotations

from drakit.base.clock import Clock
from drakit.client.events import WARNING
from drakit.scheduler.cycles.failures import FAILED_SCHEDULING
from drakit.scheduler.queue import SchedulingQueue
from drakit.scheduler.writers import Events

PATIENCE = 5.0


class GatedPods:
    """Remembers what kept each pod out at the last look, and whether it was told."""

    def __init__(self, queue: SchedulingQueue, plugin: str, clock: Clock, events: Events) -> None:
        self._queue = queue
        self._plugin = plugin
        self._clock = clock
        self._events = events
        self._seen: dict[str, tuple[str, bool]] = {}

    async def run(self) -> None:
        while True:
            await self._clock.sleep(PATIENCE)
            self.look()

    def look(self) -> None:
        seen: dict[str, tuple[str, bool]] = {}
        for queued in self._queue.gated_by(self._plugin):
            before, told = self._seen.get(queued.uid, ("", False))
            again = before == queued.gated_why
            if again and not told:
                self._events.record(queued.pod.view, WARNING, FAILED_SCHEDULING, queued.gated_why)
            seen[queued.uid] = (queued.gated_why, again)
        # Only pods that are out now: those that entered or are gone are forgotten.
        self._seen = seen
