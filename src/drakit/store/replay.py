"""Rebuild the state from the rows of a log, trusting none of them.

In:  rows in revision order, and the revision up to which the log was compacted.
Out: the state with as much history as may be kept, and the revisions of rows that are of no use any more.
"""

from __future__ import annotations

from collections.abc import Iterable

from drakit.store.contract import EMPTY_REVISION
from drakit.store.history import Retention
from drakit.store.records import Record
from drakit.store.state import State

Row = tuple[int, str, bytes | None, int]
"""Revision, key, value (none: a deletion), revision of the creation (zero for a deletion)."""


class Unsound(ValueError):
    """A row that no store can have written."""


def rebuild(rows: Iterable[Row], compacted: int, retention: Retention, now: float) -> tuple[State, list[int]]:
    """Raises Unsound when the rows cannot be what a store wrote."""
    rows = iter(rows)
    state = State(retention)
    base, dead, first = _base(rows, compacted)
    state.restore(compacted, base)
    if first is not None:
        _replay(state, first, now)
    for row in rows:
        _replay(state, row, now)
        if (excess := state.history.excess(now)) > state.history.compacted:
            dead += state.compact(excess)
    return state, dead


def _base(rows: Iterable[Row], compacted: int) -> tuple[dict[str, Record], list[int], Row | None]:
    """The records at the compacted revision, rows that they make useless, and the first row after them."""
    base: dict[str, Record] = {}
    dead: list[int] = []
    for row in rows:
        revision, key, value, created = _checked(row)
        if revision > compacted:
            return base, dead, row
        if key in base:
            dead.append(base.pop(key).revision)
        if value is None:
            dead.append(revision)
        else:
            base[key] = Record(key, value, created, revision)
    return base, dead, None


def _replay(state: State, row: Row, now: float) -> None:
    revision, key, value, created = _checked(row)
    if revision != state.revision + 1:
        raise Unsound(f"revision {state.revision + 1} is missing")
    event = state.event(revision, key, value)
    if event.record is None and event.previous is None:
        raise Unsound(f"revision {revision} deletes {key}, which is not there")
    if event.record is not None and event.record.created != created:
        raise Unsound(f"revision {revision} says {key} was created at {created}")
    state.apply(event, now)


def _checked(row: Row) -> Row:
    revision, key, value, created = row
    sound = isinstance(key, str) and isinstance(value, bytes | None) and isinstance(created, int)
    if not sound or revision <= EMPTY_REVISION or not 0 <= created <= revision:
        raise Unsound(f"revision {revision} holds no write")
    return row
