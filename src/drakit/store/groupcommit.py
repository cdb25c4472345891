"""Group commit: one journal write for all the changes that arrive while the previous one is under way.

In:  checked changes, each of a key that has no other change under way.
Out: events, published after the journal has them for good; a result or an error for each writer.

A flush to disk takes a millisecond or so whether it carries one change or a hundred. The changes of one turn of the
loop go together, and so do all that come while the disk is busy. A batch is written whole or not at all, and its
revisions are given when it goes to the journal, so that a failed one leaves no gap.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from drakit.base.errors import DrakitError
from drakit.store.errors import StoreUnavailable
from drakit.store.records import StoreEvent

Change = tuple[str, bytes | None]
Settle = Callable[[BaseException | None], None]
"""Called once, on the loop: with nothing when all events are durable, with the error when none is."""
MAX_CHANGES = 512
MAX_BYTES = 8 * 1024 * 1024


class Batch:
    """Changes that are written together. `settled` is done once all are durable and published, or all have failed."""

    __slots__ = ("changes", "settled", "size", "writers")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.changes: list[Change] = []
        self.writers: list[asyncio.Future[StoreEvent]] = []
        self.settled: asyncio.Future[None] = loop.create_future()
        self.size = 0

    def add(self, key: str, value: bytes | None, writer: asyncio.Future[StoreEvent]) -> None:
        self.changes.append((key, value))
        self.writers.append(writer)
        self.size += len(value or b"")

    @property
    def full(self) -> bool:
        return len(self.changes) >= MAX_CHANGES or self.size >= MAX_BYTES


class GroupCommit:
    """Invariant: at most one batch is with the journal (`_current`); the later ones queue, the last open to more.

    A writer that is cancelled takes nothing back: its change goes on, and its key stays reserved until it is settled.
    Nothing here is a task, so nobody can cancel it between the journal and the state.
    """

    def __init__(
        self,
        *,
        number: Callable[[Sequence[Change]], list[StoreEvent]],
        append: Callable[[Sequence[StoreEvent], Settle], None],
        publish: Callable[[StoreEvent], bool],
        reserved: dict[str, asyncio.Future[None]],
        note: Callable[[BaseException | None], None] = lambda _: None,
    ) -> None:
        """`append` starts a write of the journal; `note` is told how each batch went."""
        self._loop = asyncio.get_running_loop()
        self._number = number
        self._append = append
        self._publish = publish
        self._reserved = reserved
        self._note = note
        self._queue: deque[Batch] = deque()
        self._current: Batch | None = None
        self._scheduled = False

    def submit(self, key: str, value: bytes | None) -> asyncio.Future[StoreEvent]:
        """Add a change, and reserve its key; the result comes when it is durable and published."""
        if not self._queue or self._queue[-1].full:
            self._queue.append(Batch(self._loop))
        batch = self._queue[-1]
        writer: asyncio.Future[StoreEvent] = self._loop.create_future()
        batch.add(key, value, writer)
        self._reserved[key] = batch.settled
        self._schedule()
        return writer

    async def drain(self) -> None:
        """Wait until every change submitted so far is settled."""
        batches = [*self._queue, *([self._current] if self._current else [])]
        if batches:
            await asyncio.wait([batch.settled for batch in batches])

    def _schedule(self) -> None:
        """Start the next batch after the tasks that are ready to run now have added their changes to it."""
        if self._queue and self._current is None and not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._start)

    def _start(self) -> None:
        # The order of the queue is the order of revisions: numbers are given here, one batch at a time.
        self._scheduled = False
        self._current = batch = self._queue.popleft()
        events = self._number(batch.changes)
        self._append(events, partial(self._settle, batch, events))

    def _settle(self, batch: Batch, events: list[StoreEvent], error: BaseException | None) -> None:
        self._note(error)
        if error is None:
            self._show(batch, events, 0)
        else:
            self._fail(batch, error)

    def _show(self, batch: Batch, events: list[StoreEvent], first: int) -> None:
        """Publish events and tell their writers, giving crowded watchers a turn in between."""
        for place in range(first, len(events)):
            event, writer = events[place], batch.writers[place]
            # Published before the key is free and before its writer knows: who writes next, or reads after its own
            # write, finds the event in the state.
            crowded = self._publish(event)
            del self._reserved[event.key]
            if not writer.done():
                writer.set_result(event)
            if crowded:
                self._loop.call_soon(self._show, batch, events, place + 1)
                return
        self._finish(batch)

    def _fail(self, batch: Batch, error: BaseException) -> None:
        for (key, _), writer in zip(batch.changes, batch.writers, strict=True):
            del self._reserved[key]
            if not writer.done():
                writer.set_exception(_copy(error))
        self._finish(batch)

    def _finish(self, batch: Batch) -> None:
        self._current = None
        batch.settled.set_result(None)
        self._schedule()


def _copy(error: BaseException) -> Exception:
    """An error of its own for each writer: a shared one would collect all their tracebacks."""
    copy = (
        type(error)(*error.args) if isinstance(error, DrakitError) else StoreUnavailable(f"the write failed: {error}")
    )
    copy.__cause__ = error
    return copy
