"""Pods that are tried again only when something happens: refused ones and gated ones, found by the plugin.

Invariant: a pod stands under each of its rejectors, and there under everything that it has in common with changes
(`EventScope`). A gated pod stands under the plugin that gates it alone: nobody else can let it in.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from drakit.scheduler.framework import EventScope, Interest
from drakit.scheduler.queue.heaps import PodHeap
from drakit.scheduler.queue.queuedpod import Part, QueuedPod

logger = logging.getLogger(__name__)

_ANY = object()  # of a pod of which nobody knows what concerns it
_Topic = tuple[str, EventScope, Hashable]


class WaitingPods:
    def __init__(self, interests: Mapping[str, Sequence[Interest]]) -> None:
        self._scopes = {plugin: _scopes(each) for plugin, each in interests.items()}
        self._by_plugin: dict[str, dict[str, QueuedPod]] = {}
        self._by_topic: dict[_Topic, dict[str, QueuedPod]] = {}
        self._topics: dict[str, list[_Topic]] = {}  # of each pod, as long as it waits
        self._gated = 0
        self._flush = PodHeap()

    def add(self, queued: QueuedPod) -> None:
        """`flush_at` says when it is tried again in any case."""
        queued.part = Part.GATED if queued.gated_by is not None else Part.UNSCHEDULABLE
        self._gated += queued.part is Part.GATED
        for plugin in woken_by(queued):
            self._by_plugin.setdefault(plugin, {})[queued.uid] = queued
        self._topics[queued.uid] = topics = list(self._topics_of(queued))
        for topic in topics:
            self._by_topic.setdefault(topic, {})[queued.uid] = queued
        self._flush.push(queued, (queued.flush_at, queued.number))

    def remove(self, queued: QueuedPod) -> None:
        self._gated -= queued.part is Part.GATED
        for plugin in woken_by(queued):
            _leave(self._by_plugin, plugin, queued.uid)
        for topic in self._topics.pop(queued.uid):
            _leave(self._by_topic, topic, queued.uid)
        self._flush.remove(queued)
        queued.part = Part.OUTSIDE

    def plugins(self) -> list[str]:
        """All plugins that some pod waits for, by name: what rejects a pod is a set, and has no order of its own."""
        return sorted(self._by_plugin)

    def concerned(self, plugin: str, scope: EventScope | None, old: Any, new: Any) -> Iterable[QueuedPod]:
        """Of the pods that wait because of a plugin, those that a change can concern."""
        keys = _keys_of_change(plugin, scope, old, new) if scope is not None else None
        if scope is None or keys is None:
            return self._by_plugin.get(plugin, {}).values()
        found: dict[str, QueuedPod] = {}
        for key in (*keys, _ANY):
            found |= self._by_topic.get((plugin, scope, key), {})
        return found.values()

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

    def _topics_of(self, queued: QueuedPod) -> Iterator[_Topic]:
        for plugin in woken_by(queued):
            for scope in self._scopes.get(plugin, ()):
                for key in _keys_of_pod(plugin, scope, queued):
                    yield plugin, scope, key


def woken_by(queued: QueuedPod) -> Iterable[str]:
    """The plugins whose hints count for the pod."""
    return (queued.gated_by,) if queued.gated_by is not None else queued.rejectors


def _scopes(interests: Sequence[Interest]) -> list[EventScope]:
    return list(dict.fromkeys(each.scope for each in interests if each.scope is not None))


def _leave(index: dict[Any, dict[str, QueuedPod]], key: Hashable, uid: str) -> None:
    pods = index[key]
    del pods[uid]
    if not pods:
        del index[key]


def _keys_of_pod(plugin: str, scope: EventScope, queued: QueuedPod) -> set[Hashable]:
    try:
        return set(scope.of_pod(queued.pod.view))
    except Exception:
        logger.exception("scope of %s failed for %r: it is asked about everything", plugin, queued)
        return {_ANY}


def _keys_of_change(plugin: str, scope: EventScope, old: Any, new: Any) -> list[Hashable] | None:
    try:
        keys = scope.of_change(old, new)
        return None if keys is None else list(keys)
    except Exception:
        logger.exception("scope of %s failed for a change: all its pods are asked", plugin)
        return None
