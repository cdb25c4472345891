"""The contract of a store: what the API server may rely on, whichever engine is behind it.

In:  keys like `/registry/<group>/<resource>/<namespace>/<name>`, values as bytes.
Out: records, pages and events that carry revisions.

One revision counts the writes over all keys: each write that succeeds has a greater one than all before it. Failed
writes have none. Keys are ordered by code point. A prefix is a plain string prefix: it ends in a slash
where only whole names are meant.

Whatever a method returns, or a watch hands out, is durable as far as the engine goes: nobody sees a write before it
would survive a crash. A method may be used by many tasks of one event loop at the same time; not from other threads.
Every method raises StoreClosed once `close` was called.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from drakit.store.records import PLAIN, Record, RecordPage, Stats, StoreEvent, WriteTerms

EMPTY_REVISION = 1
"""Where an empty store stands. Not 0: clients of Kubernetes read that as "any revision"."""

DEFAULT_BUFFER = 4096


class StoreWatch(ABC):
    """Events under one prefix, in revision order, each once, with no gap; for one reader at a time.

    Cancelling a read loses no event: the next read returns it.
    """

    __slots__ = ()

    def __aiter__(self) -> Self:
        return self

    @abstractmethod
    async def __anext__(self) -> StoreEvent:
        """Wait for the next event.

        Raises StopAsyncIteration after `close`, WatcherTooSlow when the reader fell too far behind (what it had not
        read is dropped), StoreClosed once the store is closed and what was buffered before has been read.
        """

    @abstractmethod
    async def take(self) -> tuple[StoreEvent, ...]:
        """Wait for at least one event, and return all that are there; empty after `close`. Raises as `__anext__`."""

    @property
    @abstractmethod
    def progress(self) -> int:
        """A revision up to which every event under the prefix has been handed out: what a bookmark may say.

        It never goes back, and grows with writes elsewhere too, though an engine may let it lag. It counts an event
        as soon as the read returned it.
        """

    @abstractmethod
    async def close(self) -> None:
        """Stop. Idempotent; a waiting reader ends."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class Store(ABC):
    """Keys, values and their history. See the module for what holds for every method."""

    shared = False
    """Whether other processes write to the same store. Such an engine heeds `WriteTerms`; the others need none: all
    writers are in one process, and can agree there."""

    @abstractmethod
    async def revision(self) -> int:
        """The revision of the latest write; never goes back, also not over a restart."""

    async def check_writes(self) -> None:
        """Raise StoreUnavailable when the latest write failed, not long ago: a full disk. Reads may go on meanwhile.

        An engine that does not keep account of that tells whether it answers.
        """
        await self.revision()

    @abstractmethod
    async def create(self, key: str, value: bytes, *, terms: WriteTerms = PLAIN) -> Record:
        """Write a key that is not there.

        Raises KeyExists (with the current record), StoreUnavailable, Overtaken, ValueError for an empty key or one that
        is not valid Unicode.
        """

    @abstractmethod
    async def update(self, key: str, value: bytes, *, expected: int, terms: WriteTerms = PLAIN) -> Record:
        """Replace the value of a key whose latest write had the revision `expected`.

        Raises Conflict (with the current record), KeyNotFound, StoreUnavailable, Overtaken.
        """

    @abstractmethod
    async def delete(self, key: str, *, expected: int) -> Record:
        """Remove a key whose latest write had the revision `expected`.

        Returns its last value at the revision of the deletion. Raises as `update`.
        """

    @abstractmethod
    async def get(self, key: str, *, revision: int | None = None) -> Record:
        """One key, now or as it stood at a revision. Raises KeyNotFound, Compacted, FutureRevision."""

    @abstractmethod
    async def list(self, prefix: str, *, revision: int | None = None, limit: int = 0, after: str = "") -> RecordPage:
        """Records under a prefix in key order, all from one revision: the current one, or the one given.

        At most `limit` of them if that is positive, and only keys greater than `after`. Raises Compacted,
        FutureRevision.
        """

    @abstractmethod
    async def count(self, prefix: str) -> int:
        """How many keys there are under a prefix now."""

    @abstractmethod
    def last_write_revision(self, prefix: str) -> int:
        """The revision of a write under the prefix, or a later one. It changes if and only if something there changes.

        A reader compares it with the one it had when it read: equal means that nothing has changed since. That is much
        cheaper than reading again.
        The store remembers every prefix that it was asked about.
        """

    @abstractmethod
    async def watch(self, prefix: str, *, after: int, buffer: int = DEFAULT_BUFFER) -> StoreWatch:
        """Follow the writes under a prefix whose revision is greater than `after`: those of the past first.

        `buffer` bounds how many new events may wait for the reader, not counting the past ones. A reader that is
        further behind is dropped (WatcherTooSlow); writers never wait for it. Raises Compacted, FutureRevision.
        """

    @abstractmethod
    async def compact(self, revision: int) -> None:
        """Forget history before a revision; the state at that revision can still be read.

        Watches that have started are not disturbed. Compacting to where it stands already does nothing. Raises
        Compacted for an older revision, FutureRevision, StoreUnavailable: then the revision counts as compacted, but
        its space is not free yet.
        """

    @property
    @abstractmethod
    def compacted(self) -> int:
        """The revision up to which history is gone: no watch can begin before it. It only grows."""

    @abstractmethod
    async def stats(self) -> Stats:
        """Metrics, of now."""

    @abstractmethod
    async def close(self) -> None:
        """Finish the writes under way, end all watches, let go of files. Idempotent."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
