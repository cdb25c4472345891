"""The queue of pods to schedule.

In:  pods from the informer (`add`, `update`, `delete`), what happens in the cluster (`move`), attempts that failed
     (`put_back`).
Out: the pod to try next (`pop`), highest priority first, then who has waited longest.

                    pop                    put_back
    active ------------------> in flight ------------> unschedulable   (nothing happened that could help)
      ^  ^                                     |              |
      |  |         its time has come           v              |  an event that a rejecting plugin hopes for, its own
      |  +---------------------------------- backoff <--------+  update, or five minutes
      +-------------------------------------------------------+  what a plugin awaits arrives: no backoff

PreEnqueue stands before active and backoff. A pod that it refuses is gated, and PreEnqueue runs again when an event may
have changed the answer.
What happens while a pod is in flight is kept and looked at when the pod is put back, so it is never missed.

A pod that `pop` or `take` gave is in flight until `done` or `put_back`, exactly one of which must follow. All is
synchronous but `pop` and `run`.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from drakit.api.objects.partial import Partial
from drakit.api.objects.pods import Pod
from drakit.base.clock import Clock
from drakit.informers import QueueClosed
from drakit.scheduler.framework import ClusterEvent, EventResource, Interest, PreEnqueue
from drakit.scheduler.framework.changes import pod_change
from drakit.scheduler.metrics.queue import QueueObserver
from drakit.scheduler.queue import labels
from drakit.scheduler.queue.backoff import BackoffPods
from drakit.scheduler.queue.gate import PreEnqueueGate
from drakit.scheduler.queue.hints import HintQuestion, HintTable, QueueingStrategy
from drakit.scheduler.queue.inflight import InFlightPod, InFlightPods
from drakit.scheduler.queue.parts import Parts
from drakit.scheduler.queue.queuedpod import NOBODY, Part, QueuedPod
from drakit.scheduler.queue.unschedulable import WaitingPods
from drakit.scheduler.queue.waiters import Alarm, Poppers


class SchedulingQueue:
    """Invariant: a pod that is known is in exactly one part, or in flight, as its `part` says."""

    def __init__(
        self,
        clock: Clock,
        *,
        interests: Mapping[str, Sequence[Interest]],
        pre_enqueue: Mapping[str, Sequence[PreEnqueue]],
        metrics: QueueObserver | None = None,
        initial_backoff: float = 1.0,
        max_backoff: float = 10.0,
        flush_after: float = 300.0,
        pop_early: bool = True,
    ) -> None:
        """`interests` by plugin; the plugins of `pre_enqueue` by scheduler name.

        `pop_early`: when there is nothing else to do, a refused pod that was woken need not sit out its backoff.
        """
        self._clock = clock
        self._hints = HintTable(interests)
        self._flush_after = flush_after
        self._pods: dict[str, QueuedPod] = {}
        self._flights = InFlightPods()
        self._poppers = Poppers()
        self._alarm = Alarm(clock)
        self._parts = Parts(
            BackoffPods(initial_backoff, max_backoff),
            WaitingPods(interests),
            gate=PreEnqueueGate(pre_enqueue),
            metrics=metrics,
            pop_early=pop_early,
            poppers=self._poppers,
            alarm=self._alarm,
        )
        self._numbers = itertools.count()
        self._closed = False

    def add(self, pod: Partial[Pod]) -> None:
        """A pod that is to be scheduled; one that is known counts as updated."""
        known = self._pods.get(pod.view.metadata.uid)
        if known is None:
            self._enter(pod, labels.POD_ADDED)
        else:
            flight = self._flights.get(known.uid)
            self.update(known.pod if flight is None else flight.latest, pod)

    def update(self, old: Partial[Pod], new: Partial[Pod]) -> None:
        """The pod changed. One that waits moves only if the change can help it; one that is not known is added."""
        queued = self._pods.get(new.view.metadata.uid)
        if queued is None:
            self._enter(new, labels.POD_UPDATED)
        elif queued.part is Part.IN_FLIGHT:
            self._update_in_flight(queued, old.view, new)
        elif queued.part in (Part.ACTIVE, Part.BACKOFF):
            self._parts.renew(queued, new)
        else:
            self._update_waiting(queued, old.view, new)

    def delete(self, uid: str) -> None:
        """The pod is gone, or bound. If it is in flight, `put_back` will not queue it again."""
        queued = self._pods.pop(uid, None)
        if queued is None:
            return
        flight = self._flights.get(uid)
        if flight is not None:
            # The attempt goes on: it may be writing. `done` or `put_back` ends the flight.
            flight.deleted = True
            return
        self._parts.withdraw(queued)
        self._parts.count_rejectors(queued, -1)

    async def pop(self) -> QueuedPod:
        """The pod to try next, as soon as there is one. Raise QueueClosed."""
        while (queued := self.pop_now()) is None:
            if self._closed:
                raise QueueClosed("scheduling queue is closed")
            await self._poppers.wait()
        return queued

    def pop_now(self) -> QueuedPod | None:
        """The pod to try next, if there is one."""
        if self._closed:
            return None
        # The timer may be late: whose backoff is over must not lose its turn to a pod of lower priority.
        self._parts.complete_backoff(self._clock.monotonic())
        queued = self._parts.pop()
        if queued is not None:
            self._take_off(queued)
        return queued

    def put_back(
        self,
        queued: QueuedPod,
        *,
        unschedulable: Collection[str] = (),
        pending: Collection[str] = (),
        error: bool = False,
    ) -> None:
        """The attempt failed: plugins refused the pod or await something for it; without any, it was an error.

        A pod that was deleted meanwhile stays outside. One that is not in flight (`done`, closed) is left as it is.
        """
        flight = self._flights.get(queued.uid)
        if flight is None or flight.deleted:
            self.done(queued.uid)
            return
        queued.pod = flight.latest
        refused = bool(unschedulable or pending) and not error
        queued.unschedulable = frozenset(unschedulable) if refused else NOBODY
        queued.pending = frozenset(pending) if refused else NOBODY
        # Before the flight ends: ending it drops the events that were kept for it.
        strategy = self._strategy_after(flight)
        self._flights.end(queued.uid)
        self._note_attempt(queued)
        self._place(queued, strategy, labels.ATTEMPT_FAILED)

    def done(self, uid: str) -> None:
        """The pod is bound, or is not to be scheduled any more; nothing when it is not in flight."""
        flight = self._flights.get(uid)
        if flight is None:
            return
        self._flights.end(uid)
        if not flight.deleted:
            del self._pods[uid]

    def readmit(self, queued: QueuedPod, pod: Partial[Pod]) -> None:
        """A pod that was `done` could not be bound after all: as it is now, it is tried again after its backoff."""
        if self._closed or queued.uid in self._pods:
            return
        queued.pod = pod
        self._pods[queued.uid] = queued
        self._note_attempt(queued)
        self._place(queued, QueueingStrategy.AFTER_BACKOFF, labels.ATTEMPT_FAILED)

    def move(self, event: ClusterEvent, old: Any, new: Any, *, exclude: str | None = None) -> None:
        """Wake the pods that the event can help; `old` and `new` as hint functions take them.

        `exclude` is the uid of a pod that it cannot help, whatever plugins say: what it gave back was its own.
        """
        if len(self._parts.waiting):
            woken = self._woken(event, old, new)
            woken.pop(exclude or "", None)
            for queued, strategy in woken.values():
                was = self._parts.withdraw(queued)
                self._place(queued, strategy, event.label, was=was)
        # Recorded also when nobody waits: pods in flight look at it when they are put back.
        self._flights.record(event, old, new)

    def take(self, uids: Iterable[str]) -> list[QueuedPod]:
        """Take these pods out as `pop` would, whatever they wait for; not those that are gated or in flight."""
        taken = []
        for uid in uids:
            queued = self._pods.get(uid)
            if queued is None or queued.part in (Part.GATED, Part.IN_FLIGHT):
                continue
            self._parts.promote(queued, self._clock.monotonic())
            if queued.part is Part.ACTIVE:
                self._parts.withdraw(queued)
                self._take_off(queued)
                taken.append(queued)
        return taken

    async def run(self) -> None:
        """Move pods whose backoff or waiting time is over to active, until the queue is closed."""
        while not self._closed:
            self.flush()
            await self._alarm.sleep_until(self._parts.next_deadline)

    def flush(self) -> None:
        """Bring back pods whose backoff is over, and those that have waited too long for something to happen."""
        now = self._clock.monotonic()
        self._parts.complete_backoff(now)
        for queued in self._parts.waiting.overdue(now):
            queued.flush_at = now + self._flush_after
            self._place(queued, QueueingStrategy.AFTER_BACKOFF, labels.TIMED_OUT)

    def close(self) -> None:
        """Hand out nothing any more."""
        self._closed = True
        self._flights.clear()
        self._alarm.no_later_than(float("-inf"))
        self._poppers.wake_all()

    def pending(self) -> dict[str, int]:
        """How many pods wait, by part."""
        waiting = self._parts.waiting
        return {
            Part.ACTIVE: len(self._parts.active),
            Part.BACKOFF: len(self._parts.backoff),
            Part.UNSCHEDULABLE: len(waiting) - waiting.gated,
            Part.GATED: waiting.gated,
        }

    def gated_by(self, plugin: str) -> list[QueuedPod]:
        """The pods that the plugin keeps out."""
        waiting = self._parts.waiting
        return [each for each in waiting if each.gated_by == plugin] if waiting.gated else []

    def get(self, uid: str) -> QueuedPod | None:
        """The pod, wherever it is."""
        return self._pods.get(uid)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is in flight, and nothing to pop before time passes or something happens."""
        due = self._parts.backoff.next_due <= self._clock.monotonic()
        return not (self._flights or due or self._parts.can_pop)

    def _enter(self, pod: Partial[Pod], why: str) -> None:
        """A pod that is not known; it may be in flight all the same, if it was deleted meanwhile."""
        flight = self._flights.get(pod.view.metadata.uid)
        if flight is not None:
            flight.deleted = False
            self._pods[flight.queued.uid] = flight.queued
            self._update_in_flight(flight.queued, flight.latest.view, pod)
            return
        now = self._clock.monotonic()
        queued = QueuedPod(pod, now=now, number=next(self._numbers))
        queued.flush_at = now + self._flush_after
        self._pods[queued.uid] = queued
        self._place(queued, QueueingStrategy.AT_ONCE, why)

    def _update_in_flight(self, queued: QueuedPod, old: Pod, new: Partial[Pod]) -> None:
        flight = self._flights.get(queued.uid)
        if flight is not None:
            flight.latest = new
            self._flights.record(_changed(old, new.view), old, new.view, target=queued.uid)

    def _update_waiting(self, queued: QueuedPod, old: Pod, new: Partial[Pod]) -> None:
        """An update of a gated pod always runs PreEnqueue again: it is cheap, and no event would open the gate."""
        event = _changed(old, new.view)
        was = self._parts.withdraw(queued)
        queued.pod = new
        gated = queued.gated_by is not None
        strategy = QueueingStrategy.AFTER_BACKOFF if gated else self._hints.strategy(queued, event, old, new.view)
        self._place(queued, strategy, event.label, was=was)

    def _woken(self, event: ClusterEvent, old: Any, new: Any) -> dict[str, tuple[QueuedPod, QueueingStrategy]]:
        """The pods that wait and that the event can help, by uid, and how soon."""
        woken: dict[str, tuple[QueuedPod, QueueingStrategy]] = {}
        waiting = self._parts.waiting
        for plugin in waiting.plugins():
            for interest in self._hints.interests(plugin, event):
                question = HintQuestion(plugin, interest.hint, event, old, new)
                for queued in waiting.concerned(plugin, interest.scope, old, new):
                    # A pod may wait because of several plugins: the strongest answer counts, and weaker ones need no
                    # question.
                    known = woken[queued.uid][1] if queued.uid in woken else QueueingStrategy.SKIP
                    answer = question.stronger(known, queued)
                    if answer is not known:
                        woken[queued.uid] = (queued, answer)
        return woken

    def _take_off(self, queued: QueuedPod) -> None:
        self._parts.count_rejectors(queued, -1)
        queued.unschedulable = queued.pending = NOBODY
        queued.attempts += 1
        self._flights.begin(queued)

    def _strategy_after(self, flight: InFlightPod) -> QueueingStrategy:
        """Whether anything that happened during the attempt is worth another one. After an error it always is."""
        queued = flight.queued
        if not queued.rejectors:
            return QueueingStrategy.AFTER_BACKOFF
        best = QueueingStrategy.SKIP
        for event, old, new, _ in self._flights.since(flight):
            best = max(best, self._hints.strategy(queued, event, old, new))
            # The best that this pod can get: only plugins that it is pending for can ask for AT_ONCE.
            if best is QueueingStrategy.AT_ONCE or (best and not queued.pending):
                break
        return best

    def _note_attempt(self, queued: QueuedPod) -> None:
        refused = bool(queued.rejectors)
        queued.refusals += refused
        queued.errors = 0 if refused else queued.errors + 1
        queued.queued_at = self._clock.monotonic()
        # A new number: of pods with the same priority and time, the one that was put back first comes first.
        queued.number = next(self._numbers)
        queued.backoff_until = self._parts.backoff.until(queued)
        queued.flush_at = queued.queued_at + self._flush_after
        self._parts.count_rejectors(queued, +1)

    def _place(self, queued: QueuedPod, strategy: QueueingStrategy, why: str, *, was: Part = Part.OUTSIDE) -> None:
        self._parts.place(queued, strategy, self._clock.monotonic(), why, was=was)


def _changed(old: Pod, new: Pod) -> ClusterEvent:
    return ClusterEvent(EventResource.TARGET_POD, pod_change(old, new))
