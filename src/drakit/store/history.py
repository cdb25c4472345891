"""The recent writes, bounded by number, bytes and age.

In:  events, one per revision, from the state.
Out: what happened after a revision, for watches that start in the past and for reads at one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import takewhile
from math import inf

import msgspec

from drakit.store.contract import EMPTY_REVISION
from drakit.store.records import StoreEvent

_OVERHEAD = 400  # an event, its record and its key without their texts, rounded up


class Retention(msgspec.Struct, frozen=True):
    """How much history to keep; whichever bound is met first counts. Checked on each write."""

    events: int = 100_000
    bytes: int = 32 * 1024 * 1024
    seconds: float | None = 300.0


def weight(event: StoreEvent) -> int:
    """Bytes that an event may keep in memory: an upper bound, since neighbours share values."""
    after = len(event.record.value) if event.record is not None else 0
    before = len(event.previous.value) if event.previous is not None else 0
    return _OVERHEAD + len(event.key) + after + before


class History:
    """Invariant: holds exactly the events after `compacted`, in order. Revisions may have gaps: an engine that shares
    its numbers with others gives only some of them to our writes.
    """

    def __init__(self, retention: Retention) -> None:
        self.retention = retention
        self.compacted = EMPTY_REVISION
        self.bytes = 0
        self._events: deque[StoreEvent] = deque()
        self._times: deque[float] = deque()

    def __len__(self) -> int:
        return len(self._events)

    def append(self, event: StoreEvent, now: float) -> None:
        self._events.append(event)
        self._times.append(now)
        self.bytes += weight(event)

    def newest_first(self, after: int) -> Iterator[StoreEvent]:
        """The events with a revision greater than `after`, which is not compacted, from the latest back."""
        return takewhile(lambda event: event.revision > after, reversed(self._events))

    def excess(self, now: float) -> int:
        """The revision up to which history must go to be within its bounds; `compacted` if it is."""
        keep, count, size, revision = self.retention, len(self._events), self.bytes, self.compacted
        longest = inf if keep.seconds is None else keep.seconds
        for event, time in zip(self._events, self._times, strict=True):
            if count <= keep.events and size <= keep.bytes and now - time <= longest:
                break
            count -= 1
            size -= weight(event)
            revision = event.revision
        return revision

    def drop(self, revision: int) -> Iterator[StoreEvent]:
        """Forget the events up to a revision, oldest first."""
        while self._events and self._events[0].revision <= revision:
            event = self._events.popleft()
            self._times.popleft()
            self.bytes -= weight(event)
            self.compacted = event.revision
            yield event
        self.compacted = max(self.compacted, revision)
