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
from drakit.scheduler.queueing.queued import QueuedPod

logger = logging.getLogger(__name__)

Hints = tuple[HintFunction | None, ...]
"""Of one plugin, for one event; at least one. None: always worth it."""

_ALWAYS: Hints = (None,)


class Strategy(IntEnum):
    """The higher, the stronger."""

    SKIP = 0
    AFTER_BACKOFF = 1
    AT_ONCE = 2


class Question:
    """What one plugin says about one event, pod by pod."""

    __slots__ = ("_event", "_hints", "_new", "_old", "_plugin", "_wildcard")

    def __init__(self, plugin: str, hints: Hints, event: ClusterEvent, old: Any, new: Any) -> None:
        self._plugin = plugin
        self._hints = hints
        self._event = event
        self._old = old
        self._new = new
        self._wildcard = event.resource is EventResource.WILDCARD

    def stronger(self, known: Strategy, queued: QueuedPod) -> Strategy:
        """The strategy that is known, or a stronger one if the plugin asks for it."""
        awaited = self._plugin in queued.pending and not self._wildcard
        wanted = Strategy.AT_ONCE if awaited else Strategy.AFTER_BACKOFF
        return wanted if wanted > known and self._may_help(queued) else known

    def _may_help(self, queued: QueuedPod) -> bool:
        for hint in self._hints:
            if hint is None:
                return True
            try:
                if hint(queued.pod.view, self._old, self._new) is not Hint.SKIP:
                    return True
            except Exception:
                logger.exception("queueing hint of %s failed: %s, %r", self._plugin, self._event.label, queued)
                return True
        return False


class HintTable:
    """What plugins said once; events of the same kind are looked up only the first time."""

    def __init__(self, interests: Mapping[str, Sequence[Interest]]) -> None:
        self._interests = interests
        self._by_event: dict[ClusterEvent, dict[str, Hints]] = {}

    def question(self, plugin: str, event: ClusterEvent, old: Any, new: Any) -> Question | None:
        """None: the plugin is not interested."""
        if plugin not in self._interests or event.resource is EventResource.WILDCARD:
            hints = _ALWAYS
        else:
            hints = self._interested(event).get(plugin, ())
        return Question(plugin, hints, event, old, new) if hints else None

    def strategy(self, queued: QueuedPod, event: ClusterEvent, old: Any, new: Any) -> Strategy:
        """What all plugins say because of which the pod waits."""
        best = Strategy.SKIP
        for plugin in queued.rejectors:
            question = self.question(plugin, event, old, new)
            if question is not None:
                best = question.stronger(best, queued)
        return best

    def _interested(self, event: ClusterEvent) -> dict[str, Hints]:
        found = self._by_event.get(event)
        if found is None:
            found = self._by_event[event] = {
                plugin: hints
                for plugin, interests in self._interests.items()
                if (hints := tuple(each.hint for each in interests if each.event.matches(event)))
            }
        return found
