"""What the store hands out: records, events, pages. Immutable, and shared by every reader.

A value is opaque bytes: the store neither decodes nor changes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec

# Neither struct can be part of a reference cycle (strings, bytes, integers and each other, built bottom up), so the
# garbage collector need not walk hundreds of thousands of them.


class Record(msgspec.Struct, frozen=True, gc=False):
    """One key as it stood after the write that `revision` names."""

    key: str
    value: bytes
    created: int
    """Revision of the write that created the key (after its latest deletion, if there was one)."""
    revision: int
    """Revision of the latest write to the key."""


class EventType(StrEnum):
    CREATED = "created"
    MODIFIED = "modified"
    DELETED = "deleted"


class StoreEvent(msgspec.Struct, frozen=True, gc=False):
    """One write. There is exactly one object per write in the process, so it (or its revision) can key a cache."""

    revision: int
    key: str
    record: Record | None
    """The key after the write; none after a deletion."""
    previous: Record | None
    """The key before the write; none before a creation."""

    @property
    def type(self) -> EventType:
        if self.record is None:
            return EventType.DELETED
        return EventType.CREATED if self.previous is None else EventType.MODIFIED

    @property
    def value(self) -> bytes | None:
        return None if self.record is None else self.record.value

    @property
    def previous_value(self) -> bytes | None:
        return None if self.previous is None else self.previous.value


class Guard(msgspec.Struct, frozen=True):
    """A write with a guard fails (Overtaken) if another write under one of its names came after the revision `seen`.

    So whoever has judged everything up to `seen` knows that its judgement still holds when the write is applied.
    """

    names: tuple[str, ...]
    seen: int


class WriteTerms(msgspec.Struct, frozen=True):
    """What a store that is shared by processes does beside the write itself."""

    ttl: float | None = None
    """Seconds after which the key goes by itself; a later write of it counts anew, or ends that if it has none."""
    guard: Guard | None = None


PLAIN = WriteTerms()


class RecordPage(msgspec.Struct, frozen=True):
    """A part of a range, in key order, as it stood at `revision`.

    To go on, list again with the same prefix and revision, `after` being the key of the last record.
    """

    records: Sequence[Record]
    revision: int
    remaining: int
    """How many more records of the range follow this page."""


class Stats(msgspec.Struct, frozen=True):
    """Sizes and counters of the store, for `/metrics` and logs."""

    revision: int
    compacted: int
    keys: int
    history_events: int
    history_bytes: int
    watchers: int
