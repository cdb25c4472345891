"""The durable engine: state in memory for readers; every write is in one SQLite file before anybody sees it.

In:  changes that the state allows.
Out: the same changes, in groups, to the journal's thread or process; events to readers once the disk has them.

At start the whole log is read: the file is the truth, memory a view of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Self

from drakit.base.clock import Clock, RealClock
from drakit.base.errors import DrakitError
from drakit.store.embedded import EmbeddedStore
from drakit.store.errors import Corrupt, StoreClosed, StoreUnavailable
from drakit.store.groupcommit import Change, GroupCommit
from drakit.store.history import Retention
from drakit.store.journal import Journal
from drakit.store.journalprocess import JournalProcess
from drakit.store.journalthread import JournalThread
from drakit.store.records import StoreEvent, WriteTerms
from drakit.store.replay import Unsound, rebuild
from drakit.store.state import State

log = logging.getLogger("drakit.store")

_FAILURE_SECONDS = 30.0
"""For how long a write that failed counts, if no other follows."""
SWEEP_AT = 1024
"""Rows that nothing refers to any more are deleted this many at a time."""


class SQLiteStore(EmbeddedStore):
    """Use `open`."""

    def __init__(self, journal: JournalThread | JournalProcess, state: State, clock: Clock) -> None:
        super().__init__(state, clock)
        self._journal = journal
        self._group = GroupCommit(
            number=self._number,
            append=journal.append,
            publish=self._publish,
            reserved=self._reserved,
            note=self._note,
        )
        self._failure: BaseException | None = None
        """Of the latest write, if it failed."""
        self._failed_at = 0.0
        self._garbage: list[int] = []
        self._shutting = asyncio.Lock()
        self._shut = False

    @classmethod
    async def open(
        cls,
        path: Path | str,
        *,
        clock: Clock | None = None,
        retention: Retention | None = None,
        own_process: bool = False,
    ) -> Self:
        """Open a file, or make it; its directory must exist. `own_process`: the file is written by one, for servers.

        Raises StoreLocked, SchemaTooNew, Corrupt, and StoreUnavailable when the file cannot be made, read or
        written; it is then as it was.
        """
        clock = clock or RealClock()
        executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="drakit-store")
        loading = executor.submit(_load, Path(path), retention or Retention(), clock.monotonic())
        try:
            opened, state, dead = await asyncio.wrap_future(loading)
        except BaseException:
            executor.shutdown(wait=False)
            raise
        journal: JournalThread | JournalProcess = JournalThread(opened, executor)
        if own_process:
            await journal.close()
            journal = await JournalProcess.start(Path(path), state.revision)
        store = cls(journal, state, clock)
        store._forget(dead)
        return store

    async def close(self) -> None:
        self._closed = True
        async with self._shutting:
            if not self._shut:
                await self._shut_down()
                self._shut = True

    async def check_writes(self) -> None:
        # Not for ever: where nobody sends writes to a server that is not ready, none could succeed.
        if self._failure is not None and self._clock.monotonic() - self._failed_at < _FAILURE_SECONDS:
            raise StoreUnavailable(f"the latest write failed: {self._failure}")

    def _note(self, error: BaseException | None) -> None:
        """Log that writes fail, and that they succeed again, each once."""
        if error is not None:
            if self._failure is None:
                log.error("the store cannot be written to: %s", error)
            self._failure, self._failed_at = error, self._clock.monotonic()
        elif self._failure is not None:
            self._failure = None
            log.warning("the store can be written to again")

    async def _commit(self, key: str, value: bytes | None, terms: WriteTerms) -> StoreEvent:  # noqa: ARG002
        return await self._group.submit(key, value)

    def _forget(self, revisions: Sequence[int]) -> None:
        self._garbage += revisions
        if len(self._garbage) >= SWEEP_AT:
            self._discard()  # nobody waits for it: what cannot be deleted now is deleted with the next lot

    async def _sweep(self) -> None:
        await self._discard()

    def _discard(self) -> asyncio.Future[None]:
        dead, self._garbage = self._garbage, []
        return self._journal.discard(self._state.history.compacted, dead)

    async def _shut_down(self) -> None:
        # In this order: writes under way end and reach the watches, then the file is closed, then the watches end.
        await self._group.drain()
        await self._journal.close()
        self._watches.close(StoreClosed())

    def _number(self, changes: Sequence[Change]) -> list[StoreEvent]:
        first = self._state.revision + 1
        return [self._state.event(first + place, key, value) for place, (key, value) in enumerate(changes)]


def _load(path: Path, retention: Retention, now: float) -> tuple[Journal, State, list[int]]:
    journal = Journal.open(path)
    try:
        with closing(journal.rows()) as rows:
            state, dead = rebuild(rows, journal.compacted(), retention, now)
    except Unsound as error:
        journal.close()
        raise Corrupt(f"{path} is damaged: {error}") from error
    except DrakitError:
        journal.close()
        raise
    return journal, state, dead
