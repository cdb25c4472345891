"""Pods in an order, any of which may leave at any time.

Every operation is O(log n), amortised: the entry of a pod that left stays until it comes up, or there are too many.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from typing import Any

from drakit.scheduler.queue.queuedpod import QueuedPod

_SMALL = 64

_Entry = tuple[Any, int, QueuedPod]


class PodHeap:
    """Invariant: a pod is in it exactly when `_current` has it, with the entry of the heap that counts."""

    def __init__(self) -> None:
        self._heap: list[_Entry] = []
        self._current: dict[str, _Entry] = {}
        self._ticks = itertools.count()  # entries never compare equal, so pods are not compared

    def push(self, queued: QueuedPod, order: Any) -> None:
        """Add the pod. If it is in the heap, move it to its current place."""
        entry = (order, next(self._ticks), queued)
        self._current[queued.uid] = entry
        heapq.heappush(self._heap, entry)
        self._compact()

    def remove(self, queued: QueuedPod) -> None:
        del self._current[queued.uid]
        self._compact()

    def first(self) -> QueuedPod | None:
        while self._heap:
            entry = self._heap[0]
            if self._current.get(entry[2].uid) is entry:
                return entry[2]
            # The entry is stale: its pod left, or was pushed again with another order.
            heapq.heappop(self._heap)
        return None

    def pop(self) -> QueuedPod | None:
        queued = self.first()
        if queued is not None:
            heapq.heappop(self._heap)
            del self._current[queued.uid]
        return queued

    def __len__(self) -> int:
        return len(self._current)

    def __iter__(self) -> Iterator[QueuedPod]:
        """In no particular order."""
        return (queued for _, _, queued in self._current.values())

    def _compact(self) -> None:
        if len(self._heap) > 2 * len(self._current) + _SMALL:
            self._heap = list(self._current.values())
            heapq.heapify(self._heap)
