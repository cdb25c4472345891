"""Whether something that happened is worth another attempt at a pod, and how soon.

In:  what plugins are interested in, and an event.
Out: per pod, a strategy: the strongest that any plugin which refused the pod asks for.

A plugin without declared interests is interested in everything. A hint function that raises counts as QUEUE: better one
attempt too many than a pod that is forgotten.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

from drakit.scheduler.framework import ClusterEvent, EventResource, Hint, HintFunction, Interest
from drakit.scheduler.framework.events import EVERYTHING
from drakit.scheduler.queue.queuedpod import QueuedPod

logger = logging.getLogger(__name__)

_ALWAYS = (Interest(EVERYTHING),)


class QueueingStrategy(IntEnum):
    """The higher, the stronger."""

    SKIP = 0
    AFTER_BACKOFF = 1
    AT_ONCE = 2


class HintQuestion:
    """What one plugin says about one event, pod by pod."""

    __slots__ = ("_event", "_hint", "_new", "_old", "_plugin", "_wildcard")

    def __init__(self, plugin: str, hint: HintFunction | None, event: ClusterEvent, old: Any, new: Any) -> None:
        self._plugin = plugin
        self._hint = hint
        self._event = event
        self._old = old
        self._new = new
        self._wildcard = event.resource is EventResource.WILDCARD

    def stronger(self, known: QueueingStrategy, queued: QueuedPod) -> QueueingStrategy:
        """The strategy that is known, or a stronger one if the plugin asks for it."""
        awaited = self._plugin in queued.pending and not self._wildcard
        wanted = QueueingStrategy.AT_ONCE if awaited else QueueingStrategy.AFTER_BACKOFF
        return wanted if wanted > known and self._may_help(queued) else known

    def _may_help(self, queued: QueuedPod) -> bool:
        if self._hint is None:
            return True
        try:
            return self._hint(queued.pod.view, self._old, self._new) is not Hint.SKIP
        except Exception:
            logger.exception("queueing hint of %s failed: %s, %r", self._plugin, self._event.label, queued)
            return True


class HintTable:
    """What plugins said once; events of the same kind are looked up only the first time."""

    def __init__(self, interests: Mapping[str, Sequence[Interest]]) -> None:
        self._interests = interests
        self._by_event: dict[ClusterEvent, dict[str, Sequence[Interest]]] = {}

    def interests(self, plugin: str, event: ClusterEvent) -> Sequence[Interest]:
        """The interests of a plugin that an event meets."""
        if plugin not in self._interests or event.resource is EventResource.WILDCARD:
            return _ALWAYS
        return self._interested(event).get(plugin, ())

    def strategy(self, queued: QueuedPod, event: ClusterEvent, old: Any, new: Any) -> QueueingStrategy:
        """What all plugins say because of which the pod waits."""
        best = QueueingStrategy.SKIP
        for plugin in queued.rejectors:
            for interest in self.interests(plugin, event):
                best = HintQuestion(plugin, interest.hint, event, old, new).stronger(best, queued)
        return best

    def _interested(self, event: ClusterEvent) -> dict[str, Sequence[Interest]]:
        found = self._by_event.get(event)
        if found is None:
            found = self._by_event[event] = {
                plugin: met
                for plugin, interests in self._interests.items()
                if (met := [each for each in interests if each.event.matches(event)])
            }
        return found
