"""What every engine in this process has in common: state in memory, watches, checks before a write.

In:  calls of the contract, from tasks of one event loop.
Out: changes for the engine to make durable (`_commit`), then events for the watches.

Reads never leave the loop, and await nothing. A key with a write under way is reserved. A second writer waits for the
end of that write: it may still fail, and an answer that is based on it would then be wrong.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Sequence
from typing import cast

from drakit.base.clock import Clock
from drakit.store.contract import DEFAULT_BUFFER, Store, StoreWatch
from drakit.store.errors import Conflict, KeyExists, KeyNotFound, StoreClosed
from drakit.store.records import PLAIN, Record, RecordPage, Stats, StoreEvent, WriteTerms
from drakit.store.state import State
from drakit.store.watches import Dispatcher


class EmbeddedStore(Store):
    """Invariant: `_state` holds durable writes only, and the watches were given exactly those."""

    def __init__(self, state: State, clock: Clock) -> None:
        self._state = state
        self._clock = clock
        self._watches = Dispatcher(state.revision)
        self._reserved: dict[str, asyncio.Future[None]] = {}
        self._written: dict[str, int] = {}
        self._prefixes: tuple[str, ...] = ()
        """Those that `_written` has."""
        self._closed = False

    async def revision(self) -> int:
        return self._open().revision

    async def create(self, key: str, value: bytes, *, terms: WriteTerms = PLAIN) -> Record:
        _check_key(key)
        if key in self._reserved:
            await self._settled(key)
        # Nothing suspends between this and the reservation in `_commit`: else two creates of one key could both pass.
        current = self._open().records.get(key)
        if current is not None:
            raise KeyExists(current)
        event = await self._commit(key, value, terms)
        return cast("Record", event.record)  # only a deletion has none

    async def update(self, key: str, value: bytes, *, expected: int, terms: WriteTerms = PLAIN) -> Record:
        if key in self._reserved:
            await self._settled(key)
        _expect(self._open(), key, expected)
        event = await self._commit(key, value, terms)
        return cast("Record", event.record)  # only a deletion has none

    async def delete(self, key: str, *, expected: int) -> Record:
        if key in self._reserved:
            await self._settled(key)
        last = _expect(self._open(), key, expected)
        event = await self._commit(key, None, PLAIN)
        return Record(key, last.value, last.created, event.revision)

    async def get(self, key: str, *, revision: int | None = None) -> Record:
        state = self._open()
        if revision is None:
            found = state.records.get(key)
        else:
            state.check(revision)
            found = state.get(key, revision)
        if found is None:
            raise KeyNotFound(key)
        return found

    async def list(self, prefix: str, *, revision: int | None = None, limit: int = 0, after: str = "") -> RecordPage:
        state = self._open()
        if revision is None:
            revision = state.revision
        else:
            state.check(revision)
        return state.page(prefix, revision, limit, after)

    async def count(self, prefix: str) -> int:
        return self._open().count(prefix)

    def last_write_revision(self, prefix: str) -> int:
        state = self._open()
        # A prefix that was never asked about gets the current revision: later than its last write, and it stays the
        # same until the next one, which is all that the contract promises.
        found = self._written.get(prefix)
        if found is None:
            found = self._written[prefix] = state.revision
            self._prefixes = tuple(self._written)
        return found

    async def watch(self, prefix: str, *, after: int, buffer: int = DEFAULT_BUFFER) -> StoreWatch:
        state = self._open()
        state.check(after)
        return self._watches.add(prefix, state.since(prefix, after), buffer)

    async def compact(self, revision: int) -> None:
        state = self._open()
        state.check(revision)
        self._forget(state.compact(revision))
        await self._sweep()

    @property
    def compacted(self) -> int:
        return self._state.history.compacted

    async def stats(self) -> Stats:
        state, history = self._open(), self._state.history
        return Stats(
            revision=state.revision,
            compacted=history.compacted,
            keys=len(state.records),
            history_events=len(history),
            history_bytes=history.bytes,
            watchers=len(self._watches),
        )

    @abstractmethod
    async def _commit(self, key: str, value: bytes | None, terms: WriteTerms) -> StoreEvent:
        """Make a change durable (no value: a deletion) and `_publish` it; raise StoreUnavailable if it cannot be.

        The change was checked against the state, with no turn of the loop since.
        """

    @abstractmethod
    def _forget(self, revisions: Sequence[int]) -> None:
        """Take note that nothing refers to the writes of these revisions any more."""

    @abstractmethod
    async def _sweep(self) -> None:
        """Free what was forgotten, now."""

    def _publish(self, event: StoreEvent) -> bool:
        """Show a durable event to readers; whether some watcher should have a turn before many more come."""
        now = self._clock.monotonic()
        self._state.apply(event, now)
        # A handful of prefixes, one per kind of policy. One search over all: almost no key has one of them.
        if event.key.startswith(self._prefixes):
            for prefix in self._prefixes:
                if event.key.startswith(prefix):
                    self._written[prefix] = event.revision
        # After the state: a reader that is woken by the event finds it there.
        crowded = self._watches.dispatch(event)
        history = self._state.history
        if (excess := history.excess(now)) > history.compacted:
            self._forget(self._state.compact(excess))
        return crowded

    def _open(self) -> State:
        if self._closed:
            raise StoreClosed
        return self._state

    async def _settled(self, key: str) -> None:
        """Wait until no change of this key is under way."""
        # A loop, not one wait: of several writers that wait for the key, the first to run reserves it again.
        while (settled := self._reserved.get(key)) is not None:
            await asyncio.wait((settled,))


def _check_key(key: str) -> None:
    if not key:
        raise ValueError("a key must not be empty")
    if not key.isascii():
        key.encode()  # a lone surrogate has no place in a file: UnicodeEncodeError is a ValueError


def _expect(state: State, key: str, expected: int) -> Record:
    current = state.records.get(key)
    if current is None:
        raise KeyNotFound(key)
    if current.revision != expected:
        raise Conflict(current, expected)
    return current
