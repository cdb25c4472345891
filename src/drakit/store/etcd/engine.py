"""The store on etcd: writes are transactions, reads come from a copy in memory that is new enough.

In:  calls of the contract.
Out: etcd's revisions, which are one sequence over all replicas and never go back.

**Writes** compare the revision that the copy has with etcd's. When these differ, the copy was behind: it catches up and
the call is judged again. A write is answered once the copy has it, so a caller finds its own write in every read.

**Reads** are linearizable: etcd is asked for its revision first, one question for all who wait, and the copy is read
once it has come that far. Where writes of others have moved the revision, but nothing below our prefix, the copy learns
that it is complete by etcd's progress notification, where the server's version gives it rightly, and otherwise by a
marker: a key that we write, and that comes back through the watch behind everything that was before it.

Invariant: `_state` holds what etcd has at `_state.revision`, and the watches were given exactly that.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Self, TypeVar

import grpc
from grpc import aio

from drakit.base.clock import Clock, RealClock
from drakit.store.contract import DEFAULT_BUFFER, EMPTY_REVISION, StoreWatch
from drakit.store.embedded import EmbeddedStore
from drakit.store.errors import (
    Compacted,
    Conflict,
    KeyExists,
    KeyNotFound,
    Overtaken,
    StoreClosed,
    StoreUnavailable,
    WatcherTooSlow,
    WriteInDoubt,
)
from drakit.store.etcd import etcd_pb2 as pb
from drakit.store.etcd.connection import (
    ELECTION_SECONDS,
    READ_SECONDS,
    Connection,
    EtcdAccess,
    EtcdMember,
    is_passing,
    unavailable,
)
from drakit.store.etcd.follower import EtcdFollower, HistoryGap
from drakit.store.etcd.layout import read_layout
from drakit.store.etcd.quorum import Quorum
from drakit.store.etcd.requests import Keys, latest_guard, write
from drakit.store.freshness import current_reads
from drakit.store.history import Retention
from drakit.store.records import PLAIN, Record, RecordPage, StoreEvent, WriteTerms
from drakit.store.state import State

T = TypeVar("T")
WRITE_SECONDS = 5.0
PATIENCE = 0.02
"""How long events may take to arrive before we look whether any are to come at all."""
PAGE = 1_000
_TRUSTED = (((3, 4, 31), (3, 5, 0)), ((3, 5, 13), ()))
"""Versions, from and before, whose progress notifications never run ahead of the events."""


class _Stale(Exception):
    """The copy was behind when a write was judged by it."""


class EtcdStore(EmbeddedStore):
    """Use `open`."""

    shared = True

    def __init__(
        self, connection: Connection, keys: Keys, state: State, clock: Clock, *, trusts_progress: bool
    ) -> None:
        super().__init__(state, clock)
        self._connection = connection
        self._keys = keys
        self._trusts_progress = trusts_progress
        self._follower = EtcdFollower(
            connection, keys, clock, take=self._take, restart=self._read_anew, revision=self._etcd_revision
        )
        self._quorum = Quorum(clock, self._probe)
        self._arrivals: dict[int, asyncio.Future[None]] = {}
        self._question: asyncio.Task[None] | None = None
        self._asked = False

    @classmethod
    async def open(
        cls,
        access: EtcdAccess,
        *,
        clock: Clock | None = None,
        retention: Retention | None = None,
        begin_at: int = EMPTY_REVISION,
        patience: float = ELECTION_SECONDS,
    ) -> Self:
        """Read everything below the prefix and follow it from there. A new store begins at the revision `begin_at`.

        An etcd that does not answer is asked again for `patience` seconds: its members may be about to start.

        Raises StoreUnavailable, SchemaTooNew, UsageError.
        """
        connection, keys, clock = Connection(access), Keys(access.prefix), clock or RealClock()
        connection.patience = patience
        try:
            version = await connection.version()
            await read_layout(connection, keys, begin_at=begin_at)
            state = State(retention or Retention())
            state.restore(*await read_all(connection, keys))
        except BaseException:
            await connection.close()
            raise
        connection.patience = ELECTION_SECONDS
        store = cls(connection, keys, state, clock, trusts_progress=trusts_progress(version))
        store._follower.begin()
        return store

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._reserved:
            # Writes under way go to their end: their callers still need the watch to learn of the outcome.
            await asyncio.wait(list(self._reserved.values()))
        await self._quorum.close()
        await self._follower.close()
        self._watches.close(StoreClosed())
        await self._connection.close()

    # Writes

    async def create(self, key: str, value: bytes, *, terms: WriteTerms = PLAIN) -> Record:
        return await self._judged(lambda: super(EtcdStore, self).create(key, value, terms=terms))

    async def update(self, key: str, value: bytes, *, expected: int, terms: WriteTerms = PLAIN) -> Record:
        return await self._judged(lambda: super(EtcdStore, self).update(key, value, expected=expected, terms=terms))

    async def delete(self, key: str, *, expected: int) -> Record:
        return await self._judged(lambda: super(EtcdStore, self).delete(key, expected=expected))

    async def _judged(self, attempt: Callable[[], Awaitable[Record]]) -> Record:
        """Try a write against the copy. An error counts only if the copy was up to date.

        The copy may be behind etcd, so the first refusal makes it catch up and the write is tried again.
        """
        self._open()
        self._quorum.check()
        try:
            return await attempt()
        except (KeyExists, KeyNotFound, Conflict, _Stale):
            await self._catch_up()
        while True:
            try:
                return await attempt()
            except _Stale:
                await self._catch_up()

    async def _commit(self, key: str, value: bytes | None, terms: WriteTerms) -> StoreEvent:
        """Reserve the key and write. A cancelled caller does not cancel the write."""
        settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._reserved[key] = settled
        return await asyncio.shield(asyncio.ensure_future(self._write(key, value, terms, settled)))

    async def _write(
        self, key: str, value: bytes | None, terms: WriteTerms, settled: asyncio.Future[None]
    ) -> StoreEvent:
        current = self._state.records.get(key)
        try:
            expected = self._keys.of_etcd(current.revision) if current else 0
            revision = self._keys.revision(await self._transact(key, value, expected, terms))
            # Shown to readers before the writer knows: who reads after its own write finds it.
            await self._arrive(revision)
        finally:
            del self._reserved[key]
            settled.set_result(None)
        record = None if value is None else Record(key, value, current.created if current else revision, revision)
        return StoreEvent(revision, key, record, current)

    async def _transact(self, key: str, value: bytes | None, expected: int, terms: WriteTerms) -> int:
        """Etcd's revision of the write. `expected` is etcd's too. Raises _Stale, Overtaken, StoreUnavailable."""
        guards, seen = self._keys.guards(terms), self._keys.of_etcd(terms.guard.seen) if terms.guard else 0
        lease = await self._lease(terms.ttl) if terms.ttl is not None and value is not None else 0
        endpoint = self._connection.endpoint
        asked = write(self._keys.of(key), value, expected, lease=lease, guards=guards, seen=seen)
        try:
            done = await endpoint.kv.Txn(asked, timeout=WRITE_SECONDS)
        except aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED or not is_passing(error):
                raise StoreUnavailable(f"etcd refuses the write: {error.details()}") from None
            # The write is not repeated: it may have been applied although the answer was lost.
            self._connection.leave(endpoint)
            return await self._outcome(key, value, expected, error)
        if done.succeeded:
            return done.header.revision
        if guards and (latest := latest_guard(done)) > seen:
            raise Overtaken(self._keys.revision(latest))
        raise _Stale

    async def _lease(self, ttl: float) -> int:
        """A lease for one key. Were it for several, one revision would delete them all, and clients that go on after a
        revision would miss some.
        """
        asked = pb.LeaseGrantRequest(TTL=max(math.ceil(ttl), 1))
        # Repeating it on another member does no harm: a lease without a key ends unseen.
        return (await self._ask_any(lambda each: each.leases.LeaseGrant(asked, timeout=READ_SECONDS))).ID

    async def _outcome(self, key: str, value: bytes | None, expected: int, error: aio.AioRpcError) -> int:
        """Find out whether an unanswered write was applied: it was if its value is there now, else nobody knows."""
        try:
            answer = await self._range(pb.RangeRequest(key=self._keys.of(key)))
        except StoreUnavailable:
            answer = pb.RangeResponse()
        for found in answer.kvs:
            if value is not None and found.mod_revision > expected and found.value == value:
                return found.mod_revision
        raise WriteInDoubt(f"{unavailable(error)}; the write may or may not have been applied") from None

    async def _arrive(self, revision: int) -> None:
        """Wait until the copy has a revision; no longer than a write may take, as etcd has it in any case."""
        if self._state.revision < revision:
            waiting = self._arrivals.setdefault(revision, asyncio.get_running_loop().create_future())
            await asyncio.wait((waiting,), timeout=WRITE_SECONDS)

    # Reads

    async def revision(self) -> int:
        await self._verify()
        return self._open().revision

    async def get(self, key: str, *, revision: int | None = None) -> Record:
        await self._reach(revision)
        try:
            return await super().get(key, revision=revision)
        except Compacted:
            return await self._past_record(key, revision or 0)

    async def list(self, prefix: str, *, revision: int | None = None, limit: int = 0, after: str = "") -> RecordPage:
        await self._reach(revision)
        try:
            return await super().list(prefix, revision=revision, limit=limit, after=after)
        except Compacted:
            return await self._past(prefix, revision or 0, limit, after)

    async def count(self, prefix: str) -> int:
        await self._reach(None)
        return await super().count(prefix)

    async def watch(self, prefix: str, *, after: int, buffer: int = DEFAULT_BUFFER) -> StoreWatch:
        await self._reach(after)
        return await super().watch(prefix, after=after, buffer=buffer)

    async def _reach(self, revision: int | None) -> None:
        """Wait until the copy has `revision`; without one, until it is as new as etcd now.

        A client may have seen the revision on another replica.
        """
        if revision is None:
            if not current_reads().verified:
                await self._verify()
        elif revision > self._open().revision:
            await self._verify()

    async def _verify(self) -> None:
        """Catch up, for this read and those of the same request that follow.

        While etcd does not answer, who accepts that gets the copy as it is.
        """
        reads = current_reads()
        try:
            await self._catch_up()
        except StoreUnavailable:
            if not reads.accepts_unverified:
                raise
            reads.note_unverified(self._quorum.age)
        else:
            reads.verified = True

    async def _past_record(self, key: str, revision: int) -> Record:
        """A key at a revision that only etcd still has."""
        answer = await self._range(pb.RangeRequest(key=self._keys.of(key), revision=self._keys.of_etcd(revision)))
        if not answer.kvs:
            raise KeyNotFound(key)
        return self._keys.record(answer.kvs[0])

    async def _past(self, prefix: str, revision: int, limit: int, after: str) -> RecordPage:
        """A range at a revision that only etcd still has."""
        start, end = self._keys.range(prefix, after)
        at = self._keys.of_etcd(revision)
        answer = await self._range(pb.RangeRequest(key=start, range_end=end, limit=limit, revision=at))
        return RecordPage([*map(self._keys.record, answer.kvs)], revision, answer.count - len(answer.kvs))

    async def _range(self, asked: pb.RangeRequest) -> pb.RangeResponse:
        if asked.revision < 0:
            raise Compacted(self._keys.revision(asked.revision), self._state.history.compacted)
        try:
            return await self._ask_any(lambda each: each.kv.Range(asked, timeout=READ_SECONDS))
        except aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.OUT_OF_RANGE:
                raise Compacted(self._keys.revision(asked.revision), self._state.history.compacted) from None
            raise StoreUnavailable(f"etcd refuses to read: {error.details()}") from None

    async def _ask_any(self, call: Callable[[EtcdMember], Awaitable[T]]) -> T:
        """Call on any endpoint that answers, and take note whether one did. Raises StoreUnavailable."""
        self._quorum.check()
        try:
            return await self._connection.read(call)
        except StoreUnavailable:
            self._quorum.note_silence()
            raise

    async def _probe(self) -> None:
        asked = pb.RangeRequest(key=self._keys.version, keys_only=True)
        await self._connection.read(lambda each: each.kv.Range(asked, timeout=READ_SECONDS))

    # Being new enough

    async def _catch_up(self) -> None:
        """Wait until the copy is as new as etcd was when this was called.

        One question serves all who call before it is put: the answer is newer than all of their calls.
        """
        self._open()
        self._quorum.check()
        if self._question is not None and not self._asked:
            question = self._question
        else:
            question = self._question = asyncio.create_task(self._ask(self._question))
            self._asked = False
        await asyncio.shield(question)
        self._open()

    async def _ask(self, before: asyncio.Task[None] | None) -> None:
        # One question at a time. Callers that come while it is on its way need a later answer, and share the next one.
        if before is not None and not before.done():
            await asyncio.wait((before,))
        self._asked = True
        answer = await self._range(pb.RangeRequest(key=self._keys.version, keys_only=True))
        revision = self._keys.revision(answer.header.revision)
        if self._state.revision < revision:
            await self._wait_for(revision)
        self._quorum.note_current()

    async def _wait_for(self, revision: int) -> None:
        waiting = self._arrivals.setdefault(revision, asyncio.get_running_loop().create_future())
        done, _ = await asyncio.wait((waiting,), timeout=PATIENCE)
        if done:
            return
        # Nothing came: perhaps the revision moved by somebody else's writes. Find out that there is nothing more.
        if self._trusts_progress:
            await self._follower.ask_progress()
        else:
            await self._put_marker()
        done, _ = await asyncio.wait((waiting,), timeout=WRITE_SECONDS)
        if not done:
            self._arrivals.pop(revision, None)
            raise StoreUnavailable("etcd's events do not arrive")

    async def _put_marker(self) -> None:
        # Repeating it on another member does no harm: the marker has no value.
        asked = pb.PutRequest(key=self._keys.marker)
        await self._ask_any(lambda each: each.kv.Put(asked, timeout=READ_SECONDS))

    # The copy

    def _etcd_revision(self) -> int:
        return self._keys.of_etcd(self._state.revision)

    async def _take(self, events: Sequence[pb.Event], revision: int) -> None:
        for event in events:
            if not self._keys.is_object(event.kv.key):
                continue
            number, key = self._keys.revision(event.kv.mod_revision), self._keys.name(event.kv.key)
            if number <= self._state.revision:
                # We never write two keys in one transaction, but somebody with etcdctl may.
                raise HistoryGap(f"revision {number} has several events, which no client could go on after")
            value = event.kv.value if event.type == pb.Event.PUT else None
            if self._publish(self._state.event(number, key, value)):
                # A burst would drop watchers that keep up well, had they no turn in between.
                await asyncio.sleep(0)
        # Last, and for the marker too: it is no object, but its revision completes the copy.
        self._note(self._keys.revision(revision))

    def _note(self, revision: int) -> None:
        """Nothing more comes up to that revision."""
        self._state.revision = max(self._state.revision, revision)
        self._watches.revision = self._state.revision
        for each in [each for each in self._arrivals if each <= self._state.revision]:
            arrival = self._arrivals.pop(each)
            if not arrival.done():
                arrival.set_result(None)

    async def _read_anew(self) -> None:
        """Replace the copy by what etcd has now. Watches would have a gap, so they end and their clients list again."""
        revision, records = await read_all(self._connection, self._keys)
        state = State(self._state.history.retention)
        state.restore(revision, records)
        self._state = state
        # Deletions that we missed are not known, so every prefix counts as changed.
        for prefix in self._written:
            self._written[prefix] = revision
        self._watches.close(WatcherTooSlow("", self._watches.revision, 0))
        self._note(revision)

    # Compaction

    async def compact(self, revision: int) -> None:
        await self._reach(revision)
        await super().compact(revision)
        asked = pb.CompactionRequest(revision=self._keys.of_etcd(revision))
        try:
            await self._connection.read(lambda each: each.kv.Compact(asked, timeout=WRITE_SECONDS))
        except aio.AioRpcError as error:
            # Another replica was faster: what was to be forgotten is forgotten.
            if error.code() is not grpc.StatusCode.OUT_OF_RANGE:
                raise StoreUnavailable(f"etcd refuses to compact: {error.details()}") from None

    def _forget(self, revisions: Sequence[int]) -> None:
        """Memory only: etcd's own history goes by `compact`."""

    async def _sweep(self) -> None:
        """Nothing is kept beside the state."""


async def read_all(connection: Connection, keys: Keys) -> tuple[int, dict[str, Record]]:
    """Everything below the prefix at one revision, page by page."""
    start, end = keys.range("")
    revision, records = 0, dict[str, Record]()
    while True:
        asked = pb.RangeRequest(key=start, range_end=end, limit=PAGE, revision=revision)
        page = await _page(connection, asked)
        # All pages are read at the revision of the first; otherwise the copy would mix several states.
        revision = revision or page.header.revision
        for found in page.kvs:
            if keys.is_object(found.key):
                record = keys.record(found)
                records[record.key] = record
        if not page.more:
            return keys.revision(revision), records
        start = page.kvs[-1].key + b"\x00"


async def _page(connection: Connection, asked: pb.RangeRequest) -> pb.RangeResponse:
    try:
        return await connection.read(lambda each: each.kv.Range(asked, timeout=WRITE_SECONDS))
    except aio.AioRpcError as error:
        raise StoreUnavailable(f"etcd refuses to read: {error.details()}") from None


def trusts_progress(version: tuple[int, ...]) -> bool:
    """Whether a server of that version never says that a watch is further than what it has sent."""
    return any(version >= least and (not below or version < below) for least, below in _TRUSTED)
