"""Pods that are being tried or bound, and what happened since: an attempt saw the state of its beginning.

Invariant: an event is kept as long as a pod is in flight that left before it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from drakit.api.objects.partial import Partial
from drakit.api.objects.pods import Pod
from drakit.scheduler.framework import ClusterEvent
from drakit.scheduler.queue.queuedpod import Part, QueuedPod


class Happened(NamedTuple):
    event: ClusterEvent
    old: Any
    new: Any
    target: str | None  # the uid of the only pod that it is about


class InFlightPod:
    __slots__ = ("began", "deleted", "latest", "queued")

    def __init__(self, queued: QueuedPod, began: int) -> None:
        self.queued = queued
        self.began = began  # the number of the first event that it has not seen
        self.latest: Partial[Pod] = queued.pod
        self.deleted = False


class InFlightPods:
    def __init__(self) -> None:
        self._flights: OrderedDict[str, InFlightPod] = OrderedDict()  # in the order in which they began
        self._events: deque[Happened] = deque()
        self._dropped = 0  # the number of the first event that is kept

    def begin(self, queued: QueuedPod) -> None:
        queued.part = Part.IN_FLIGHT
        self._flights[queued.uid] = InFlightPod(queued, self._dropped + len(self._events))

    def get(self, uid: str) -> InFlightPod | None:
        return self._flights.get(uid)

    def record(self, event: ClusterEvent, old: Any, new: Any, *, target: str | None = None) -> None:
        # Without a pod in flight nobody will ever ask: the list would only grow.
        if self._flights:
            self._events.append(Happened(event, old, new, target))

    def since(self, flight: InFlightPod) -> Iterator[Happened]:
        """What happened to everybody, or to this pod, since it left."""
        uid = flight.queued.uid
        later = islice(self._events, flight.began - self._dropped, None)
        return (each for each in later if each.target is None or each.target == uid)

    def end(self, uid: str) -> None:
        flight = self._flights.pop(uid)
        flight.queued.part = Part.OUTSIDE
        oldest = next(iter(self._flights.values()), None)
        if oldest is None:
            self._dropped += len(self._events)
            self._events.clear()
            return
        # Events before the oldest flight have been seen by everybody who is still in flight.
        while self._dropped < oldest.began:
            self._events.popleft()
            self._dropped += 1

    def clear(self) -> None:
        for uid in list(self._flights):
            self.end(uid)

    @property
    def events(self) -> int:
        """How many events are kept."""
        return len(self._events)

    def __len__(self) -> int:
        return len(self._flights)
