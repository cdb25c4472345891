"""Pods in backoff.

A pod that plugins refused may be tried before its backoff is over when there is nothing else to do. A pod whose attempt
ended in an error waits the whole time: an immediate retry would fail the same way.
"""

from __future__ import annotations

from collections.abc import Iterator

from drakit.scheduler.queue.heaps import PodHeap
from drakit.scheduler.queue.queuedpod import Part, QueuedPod

_WINDOW = 1.0
"""Seconds within which it counts for nothing whose time comes first: pods go by their priority."""


class BackoffPods:
    """Invariant: `_early` has the same pods as `_refused`."""

    def __init__(self, initial: float, maximum: float) -> None:
        self._initial = initial
        self._maximum = maximum
        self._refused = PodHeap()
        self._failed = PodHeap()
        self._early = PodHeap()

    def until(self, queued: QueuedPod) -> float:
        """When a pod that was put back may be tried again: longer each time."""
        times = queued.errors or queued.refusals
        return queued.queued_at + min(self._initial * 2.0 ** min(times - 1, 64), self._maximum)

    def add(self, queued: QueuedPod) -> None:
        queued.part = Part.BACKOFF
        self._heap_of(queued).push(queued, (queued.backoff_until, queued.order))
        if not queued.failed:
            self._early.push(queued, (queued.backoff_until // _WINDOW, queued.order))

    def remove(self, queued: QueuedPod) -> None:
        self._heap_of(queued).remove(queued)
        if not queued.failed:
            self._early.remove(queued)
        queued.part = Part.OUTSIDE

    def due(self, now: float) -> Iterator[QueuedPod]:
        """Take out those whose time has come."""
        for heap in (self._refused, self._failed):
            while (queued := heap.first()) is not None and queued.backoff_until <= now:
                self.remove(queued)
                yield queued

    def pop_early(self) -> QueuedPod | None:
        """Take out the refused pod whose time comes next; of those whose time is near to it, the most important."""
        queued = self._early.first()
        if queued is not None:
            self.remove(queued)
        return queued

    @property
    def next_due(self) -> float:
        firsts = (heap.first() for heap in (self._refused, self._failed))
        return min((queued.backoff_until for queued in firsts if queued is not None), default=float("inf"))

    @property
    def early(self) -> int:
        """How many `pop_early` could give."""
        return len(self._refused)

    def __iter__(self) -> Iterator[QueuedPod]:
        yield from self._refused
        yield from self._failed

    def __len__(self) -> int:
        return len(self._refused) + len(self._failed)

    def _heap_of(self, queued: QueuedPod) -> PodHeap:
        return self._failed if queued.failed else self._refused
