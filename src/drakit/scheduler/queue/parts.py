"""The three parts in which pods wait, and the ways between them.

PreEnqueue stands before active and backoff: whom it refuses is gated. From backoff a pod goes to active unasked.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from drakit.api.objects.partial import Partial
from drakit.api.objects.pods import Pod
from drakit.scheduler.metrics.queue import QueueObserver
from drakit.scheduler.queue import labels
from drakit.scheduler.queue.backoff import BackoffPods
from drakit.scheduler.queue.gate import PreEnqueueGate
from drakit.scheduler.queue.heaps import PodHeap
from drakit.scheduler.queue.hints import QueueingStrategy
from drakit.scheduler.queue.queuedpod import Part, QueuedPod
from drakit.scheduler.queue.unschedulable import WaitingPods
from drakit.scheduler.queue.waiters import Alarm, Poppers


class Parts:
    """Wakes a popper when another pod can be popped, and sets the alarm to the time when something is due."""

    def __init__(
        self,
        backoff: BackoffPods,
        waiting: WaitingPods,
        *,
        gate: PreEnqueueGate,
        metrics: QueueObserver | None,
        pop_early: bool,
        poppers: Poppers,
        alarm: Alarm,
    ) -> None:
        self.active = PodHeap()
        self.backoff = backoff
        self.waiting = waiting
        self._gate = gate
        self._metrics = metrics
        self._pop_early = pop_early
        self._poppers = poppers
        self._alarm = alarm

    def place(
        self, queued: QueuedPod, strategy: QueueingStrategy, now: float, why: str, *, was: Part = Part.OUTSIDE
    ) -> None:
        """Add a pod to the part where it belongs; `was` is the part that it left."""
        if strategy is QueueingStrategy.SKIP or not self._may_enter(queued):
            self._wait(queued, why, stays=was in (Part.UNSCHEDULABLE, Part.GATED))
        elif strategy is QueueingStrategy.AFTER_BACKOFF and now < queued.backoff_until:
            self._back_off(queued, why)
        else:
            self._activate(queued, now, why)

    def withdraw(self, queued: QueuedPod) -> Part:
        """Take the pod out; say of which part."""
        part = queued.part
        if part is Part.ACTIVE:
            self.active.remove(queued)
        elif part is Part.BACKOFF:
            self.backoff.remove(queued)
        else:
            self.waiting.remove(queued)
        queued.part = Part.OUTSIDE
        return part

    def promote(self, queued: QueuedPod, now: float) -> None:
        """Let a pod be tried now that waits in any part; a gate holds."""
        if queued.part is Part.ACTIVE:
            return
        was = self.withdraw(queued)
        if was is Part.BACKOFF:
            self._activate(queued, now, labels.ACTIVATED)
        else:
            self.place(queued, QueueingStrategy.AT_ONCE, now, labels.ACTIVATED, was=was)

    def renew(self, queued: QueuedPod, pod: Partial[Pod]) -> None:
        """The pod in active or backoff changed, perhaps its priority."""
        queued.pod = pod
        if queued.part is Part.ACTIVE:
            self.active.push(queued, queued.order)
        else:
            self.backoff.add(queued)

    def complete_backoff(self, now: float) -> None:
        for queued in self.backoff.due(now):
            self._activate(queued, now, labels.BACKOFF_COMPLETE)

    def pop(self) -> QueuedPod | None:
        """The pod to try next."""
        queued = self.active.pop()
        # The scheduler is idle: a refused pod that an event woke need not sit out its backoff.
        if queued is None and self._pop_early:
            queued = self.backoff.pop_early()
            if queued is not None:
                self._count(Part.ACTIVE, labels.POPPED_EARLY)
        return queued

    @property
    def can_pop(self) -> bool:
        return bool(len(self.active)) or (self._pop_early and self.backoff.early > 0)

    @property
    def next_deadline(self) -> float:
        return min(self.backoff.next_due, self.waiting.next_flush)

    def __iter__(self) -> Iterator[QueuedPod]:
        return itertools.chain(self.active, self.backoff, self.waiting)

    def _may_enter(self, queued: QueuedPod) -> bool:
        before = queued.gated_by
        status = self._gate.check(queued.pod.view)
        queued.gated_by = None if status.ok else status.plugin
        queued.gated_why = status.message
        if before != queued.gated_by:
            self._count_gate(queued, before, -1)
            self._count_gate(queued, queued.gated_by, +1)
        return status.ok

    def _activate(self, queued: QueuedPod, now: float, why: str) -> None:
        queued.part = Part.ACTIVE
        if queued.first_active is None:
            queued.first_active = now
        self.active.push(queued, queued.order)
        self._count(Part.ACTIVE, why)
        self._poppers.wake()

    def _back_off(self, queued: QueuedPod, why: str) -> None:
        self.backoff.add(queued)
        self._count(Part.BACKOFF, why)
        self._alarm.no_later_than(queued.backoff_until)
        if self._pop_early and not queued.failed:
            self._poppers.wake()

    def _wait(self, queued: QueuedPod, why: str, *, stays: bool) -> None:
        self.waiting.add(queued)
        if not stays:
            self._count(Part.UNSCHEDULABLE, why)
        self._alarm.no_later_than(queued.flush_at)

    def count_rejectors(self, queued: QueuedPod, change: int) -> None:
        """Tell how many pods wait because of the plugins that this one waits for."""
        if self._metrics is not None:
            for plugin in queued.rejectors:
                self._metrics.unschedulable(plugin, queued.profile, change)

    def _count_gate(self, queued: QueuedPod, plugin: str | None, change: int) -> None:
        counted = plugin is None or plugin in queued.unschedulable or plugin in queued.pending
        if self._metrics is not None and plugin is not None and not counted:
            self._metrics.unschedulable(plugin, queued.profile, change)

    def _count(self, part: Part, why: str) -> None:
        if self._metrics is not None:
            self._metrics.incoming(part, why)
