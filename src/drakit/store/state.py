"""The state of a store in memory: what stands under each key now, and how it came to be.

In:  events, applied in revision order: from a caller's write once it is durable, or from the file at start.
Out: records and pages, now or at a revision that history still covers.

Pure: no I/O, no loop, no clock of its own. Every embedded engine has one; how writes become durable is up to it.
"""

from __future__ import annotations

from collections.abc import Mapping

from drakit.store.contract import EMPTY_REVISION
from drakit.store.errors import Compacted, FutureRevision
from drakit.store.history import History, Retention
from drakit.store.keys import KeyIndex, end_of
from drakit.store.records import Record, RecordPage, StoreEvent


class State:
    """Invariant: `_keys` holds exactly the keys of `records`; undoing history from the end gives any state back to
    `history.compacted`.
    """

    def __init__(self, retention: Retention) -> None:
        self.revision = EMPTY_REVISION
        self.records: dict[str, Record] = {}
        self.history = History(retention)
        self._keys = KeyIndex()

    def restore(self, revision: int, records: Mapping[str, Record]) -> None:
        """Begin with these records, at a revision before which there is no history."""
        self.revision = self.history.compacted = revision
        self.records = dict(records)
        for key in records:
            self._keys.add(key)

    def event(self, revision: int, key: str, value: bytes | None) -> StoreEvent:
        """What a write (no value: a deletion) would do to the key as it is."""
        previous = self.records.get(key)
        if value is None:
            return StoreEvent(revision, key, None, previous)
        created = revision if previous is None else previous.created
        return StoreEvent(revision, key, Record(key, value, created, revision), previous)

    def apply(self, event: StoreEvent, now: float) -> None:
        """Make the next event part of the state."""
        if event.record is None:
            del self.records[event.key]
            self._keys.remove(event.key)
        else:
            self.records[event.key] = event.record
            if event.previous is None:
                self._keys.add(event.key)
        self.revision = event.revision
        self.history.append(event, now)

    def check(self, revision: int) -> None:
        """Raise Compacted or FutureRevision unless that revision can be read."""
        if revision < self.history.compacted:
            raise Compacted(revision, self.history.compacted)
        if revision > self.revision:
            raise FutureRevision(revision, self.revision)

    def get(self, key: str, revision: int) -> Record | None:
        """The key as it stood at a revision that can be read."""
        found = self.records.get(key)
        for event in self.history.newest_first(revision):
            if event.key == key:
                found = event.previous
        return found

    def count(self, prefix: str) -> int:
        return self._keys.count(prefix, end_of(prefix))

    def page(self, prefix: str, revision: int, limit: int, after: str) -> RecordPage:
        """A part of a range as it stood at a revision that can be read."""
        start, end = max(prefix, after + "\0") if after else prefix, end_of(prefix)
        undo = self._undo(prefix, start, revision)
        if undo:
            return self._past_page(start, end, revision, limit, undo)
        keys = self._keys.between(start, end, limit)
        left = self._keys.count(start, end) - len(keys) if limit else 0
        return RecordPage([self.records[key] for key in keys], revision, left)

    def since(self, prefix: str, revision: int) -> list[StoreEvent]:
        """The events under a prefix after a revision that can be read, oldest first."""
        found = [event for event in self.history.newest_first(revision) if event.key.startswith(prefix)]
        found.reverse()
        return found

    def compact(self, revision: int) -> list[int]:
        """Forget history up to a revision; returns the revisions of writes that nothing refers to any more."""
        dead = []
        for event in self.history.drop(revision):
            # Once no watch can start before this event, the value that it replaced cannot be read any more.
            if event.previous is not None:
                dead.append(event.previous.revision)
            if event.record is None:
                dead.append(event.revision)
        return dead

    def _undo(self, prefix: str, start: str, revision: int) -> dict[str, Record | None]:
        """What the keys of a range held at a revision, for those that were written since."""
        undo: dict[str, Record | None] = {}
        if revision == self.revision:
            return undo
        for event in self.history.newest_first(revision):
            if event.key.startswith(prefix) and event.key >= start:
                undo[event.key] = event.previous  # the oldest write after the revision comes last, and counts
        return undo

    def _past_page(
        self, start: str, end: str | None, revision: int, limit: int, undo: Mapping[str, Record | None]
    ) -> RecordPage:
        # The whole range and not a page of it: what was deleted since must be put between its neighbours first.
        now = {key: self.records[key] for key in self._keys.between(start, end)}
        then = {key: record for key, record in {**now, **undo}.items() if record is not None}
        keys = sorted(then)
        shown = keys[:limit] if limit else keys
        return RecordPage([then[key] for key in shown], revision, len(keys) - len(shown))
