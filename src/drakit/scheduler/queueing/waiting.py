"""Pods that are tried again only when something happens: refused ones and gated ones, found by the plugin.

Invariant: a pod stands under each of its rejectors; a gated one under the plugin that gates it alone, for nobody else
can let it in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from drakit.scheduler.queueing.heaps import PodHeap
from drakit.scheduler.queueing.queued import Part, QueuedPod


class WaitingPods:
    def __init__(self) -> None:
        self._by_plugin: dict[str, dict[str, QueuedPod]] = {}
        self._gated = 0
        self._flush = PodHeap()

    def add(self, queued: QueuedPod) -> None:
        """`flush_at` says when it is tried again in any case."""
        queued.part = Part.GATED if queued.gated_by is not None else Part.UNSCHEDULABLE
        self._gated += queued.part is Part.GATED
        for plugin in woken_by(queued):
            self._by_plugin.setdefault(plugin, {})[queued.uid] = queued
        self._flush.push(queued, (queued.flush_at, queued.number))

    def remove(self, queued: QueuedPod) -> None:
        self._gated -= queued.part is Part.GATED
        for plugin in woken_by(queued):
            pods = self._by_plugin[plugin]
            del pods[queued.uid]
            if not pods:
                del self._by_plugin[plugin]
        self._flush.remove(queued)
        queued.part = Part.OUTSIDE

    def plugins(self) -> list[str]:
        """Those because of which any pod waits."""
        return list(self._by_plugin)

    def refused_by(self, plugin: str) -> Iterable[QueuedPod]:
        return self._by_plugin.get(plugin, {}).values()

    def overdue(self, now: float) -> list[QueuedPod]:
        """Take out those that have waited too long."""
        found = []
        while (queued := self._flush.first()) is not None and queued.flush_at <= now:
            self.remove(queued)
            found.append(queued)
        return found

    @property
    def next_flush(self) -> float:
        longest = self._flush.first()
        return longest.flush_at if longest is not None else float("inf")

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._flush)

    def __len__(self) -> int:
        return len(self._flush)

    @property
    def gated(self) -> int:
        return self._gated


def woken_by(queued: QueuedPod) -> Iterable[str]:
    """The plugins whose hints count for the pod."""
    return (queued.gated_by,) if queued.gated_by is not None else queued.rejectors
