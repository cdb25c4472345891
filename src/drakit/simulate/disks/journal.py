"""The disk of the simulated API server: a journal that takes time to flush, and loses what it has not flushed.

In:  the batches of the store's group commit.
Out: rows that survive a crash; a store that begins with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from drakit.base.clock import Clock
from drakit.simulate.loops import SeededLoop
from drakit.store.contract import EMPTY_REVISION
from drakit.store.embedded import EmbeddedStore
from drakit.store.errors import StoreClosed, StoreUnavailable
from drakit.store.groupcommit import Change, GroupCommit, Settle
from drakit.store.history import Retention
from drakit.store.records import StoreEvent, WriteTerms
from drakit.store.replay import Row, rebuild
from drakit.store.state import State

_FLUSH = 0.002
_SLOW_FLUSH = 0.05
Observer = Callable[[StoreEvent], None]


class JournalDisk:
    """What of the journal is on the disk. A batch is there whole or not at all, as with a transaction of SQLite."""

    def __init__(self, random: Random) -> None:
        self.rows: list[Row] = []
        self.compacted = EMPTY_REVISION
        self.full = False
        self.slow = False
        self._random = random
        self._in_flight: Sequence[StoreEvent] = ()

    @property
    def revision(self) -> int:
        return self.rows[-1][0] if self.rows else self.compacted

    def begin(self, events: Sequence[StoreEvent]) -> float:
        """A batch is on its way; how long the flush takes."""
        self._in_flight = events
        return (_SLOW_FLUSH if self.slow else _FLUSH) * self._random.random()

    def finish(self, events: Sequence[StoreEvent]) -> None:
        """Raise StoreUnavailable for a disk that is full."""
        self._in_flight = ()
        if self.full:
            raise StoreUnavailable("the disk is full")
        self.rows += [_row(each) for each in events]

    def lose_power(self) -> None:
        """The batch under way may have reached the disk, though nobody was told."""
        if self._in_flight and not self.full and self._random.random() < 0.5:
            self.rows += [_row(each) for each in self._in_flight]
        self._in_flight = ()


def _row(event: StoreEvent) -> Row:
    record = event.record
    return (event.revision, event.key, None, 0) if record is None else (
        event.revision, event.key, record.value, record.created
    )  # fmt: skip


class _Flushes:
    """The journal's writes, on the loop, after the time that the disk takes."""

    def __init__(self, disk: JournalDisk, loop: SeededLoop) -> None:
        self._disk = disk
        self._loop = loop

    def append(self, events: Sequence[StoreEvent], settle: Settle) -> None:
        self._loop.call_later(self._disk.begin(events), self._end, events, settle)

    def _end(self, events: Sequence[StoreEvent], settle: Settle) -> None:
        error: BaseException | None = None
        try:
            self._disk.finish(events)
        except Exception as failure:
            error = failure
        # As a real disk: the outcome comes from outside, in a turn of its own.
        self._loop.call_soon(settle, error)


class JournalStore(EmbeddedStore):
    """The real state, watches and group commit of the store, on a simulated disk."""

    def __init__(self, disk: JournalDisk, clock: Clock, loop: SeededLoop, observe: Observer) -> None:
        state, _ = rebuild(iter(disk.rows), disk.compacted, Retention(), clock.monotonic())
        super().__init__(state, clock)
        self._disk = disk
        self._observe = observe
        self._group = GroupCommit(
            number=self._number,
            append=_Flushes(disk, loop).append,
            publish=self._shown,
            reserved=self._reserved,
        )

    @property
    def state(self) -> State:
        return self._state

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._watches.close(StoreClosed())

    async def _commit(self, key: str, value: bytes | None, terms: WriteTerms) -> StoreEvent:  # noqa: ARG002
        return await self._group.submit(key, value)

    def _number(self, changes: Sequence[Change]) -> list[StoreEvent]:
        first = self._state.revision + 1
        return [self._state.event(first + place, key, value) for place, (key, value) in enumerate(changes)]

    def _shown(self, event: StoreEvent) -> bool:
        self._observe(event)
        return self._publish(event)

    def _forget(self, revisions: Sequence[int]) -> None:
        """Rows that nothing refers to stay: a simulation is short."""

    async def _sweep(self) -> None:
        """As above; the next start has the whole history again, which a watch may then use."""
