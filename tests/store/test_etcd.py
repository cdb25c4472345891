"""What etcd brings beyond the contract: stores that share one truth, members that fail, neighbours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import msgspec
import pytest

from drakit.base.errors import UsageError
from drakit.store import (
    Compacted,
    Conflict,
    FutureRevision,
    Guard,
    KeyExists,
    KeyNotFound,
    Overtaken,
    Retention,
    SchemaTooNew,
    StoreUnavailable,
    WatcherTooSlow,
    WriteTerms,
)
from drakit.store.etcd import EtcdAccess, EtcdStore
from drakit.store.etcd import etcd_pb2 as pb
from drakit.store.etcd.connection import Connection
from drakit.store.etcd.engine import trusts_progress
from drakit.store.freshness import request_reads
from tests.builders.etcd import Member, etcd_cluster
from tests.builders.loop import on_loop
from tests.store.engines import read


@pytest.fixture
def place(request: pytest.FixtureRequest, etcd_address: str) -> EtcdAccess:
    return EtcdAccess(endpoints=(etcd_address,), prefix=f"/{request.node.name}")


@asynccontextmanager
async def two(place: EtcdAccess) -> AsyncIterator[tuple[EtcdStore, EtcdStore]]:
    async with await EtcdStore.open(place) as one, await EtcdStore.open(place) as other:
        yield one, other


@on_loop
async def test_a_write_of_one_replica_is_read_by_the_other_at_once(place: EtcdAccess) -> None:
    async with two(place) as (one, other):
        for number in range(20):
            made = await one.create(f"/k/{number}", b"1")
            assert await other.get(made.key) == made
            changed = await other.update(made.key, b"2", expected=made.revision)
            assert (await one.list("/k/")).records[-1 if number < 1 else 0].value == b"2"
            assert await one.get(made.key) == changed
        assert await one.count("/k/") == 20


@on_loop
async def test_of_two_replicas_that_write_one_key_one_wins_and_the_other_is_told(
    place: EtcdAccess,
) -> None:
    async with two(place) as (one, other):
        outcomes = await asyncio.gather(
            *(store.create("/a", store_name) for store, store_name in ((one, b"one"), (other, b"other"))),
            return_exceptions=True,
        )
        (refused,) = [each for each in outcomes if isinstance(each, KeyExists)]
        assert refused.current == await one.get("/a") == await other.get("/a")
        made = refused.current
        moved = await one.update("/a", b"moved", expected=made.revision)
        with pytest.raises(Conflict) as caught:
            await other.update("/a", b"late", expected=made.revision)
        assert caught.value.current == moved
        await one.delete("/a", expected=moved.revision)
        with pytest.raises(KeyNotFound):
            await other.delete("/a", expected=moved.revision)
        # What the copy has of a key that is gone refuses nobody who creates it anew.
        again = await other.create("/a", b"again")
        assert await one.get("/a") == again


@on_loop
async def test_a_watch_sees_the_writes_of_all_replicas_in_one_order(place: EtcdAccess) -> None:
    async with two(place) as (one, other):
        start = await one.revision()
        watches = [await store.watch("/k/", after=start) for store in (one, other)]
        await asyncio.gather(*(store.create(f"/k/{n}-{id(store)}", b"") for n in range(25) for store in (one, other)))
        seen = [[(event.revision, event.key) for event in await read(watch, 50)] for watch in watches]
        assert seen[0] == seen[1] == sorted(seen[0])


@on_loop
async def test_writes_below_other_prefixes_hold_up_no_read(place: EtcdAccess) -> None:
    """They move etcd's revision, and nothing of ours comes through the watch."""
    neighbour = msgspec.structs.replace(place, prefix="/neighbour" + place.prefix)
    async with await EtcdStore.open(place) as ours, await EtcdStore.open(neighbour) as theirs:
        made = await ours.create("/a", b"1")
        for number in range(5):
            await theirs.create(f"/b/{number}", b"")
            assert await ours.get("/a") == made
        assert (await ours.list("/")).records == [made]
        assert await ours.revision() > made.revision


@on_loop
async def test_what_memory_has_forgotten_is_read_from_etcd(place: EtcdAccess) -> None:
    async with await EtcdStore.open(place, retention=Retention(events=2)) as store:
        first = await store.create("/k/a", b"1")
        await store.create("/k/b", b"1")
        for number in range(5):
            current = await store.get("/k/a")
            await store.update("/k/a", b"%d" % number, expected=current.revision)
        assert await store.get("/k/a", revision=first.revision) == first
        page = await store.list("/k/", revision=first.revision + 1, limit=1)
        assert (page.records, page.remaining) == ([first], 1)
        with pytest.raises(KeyNotFound):
            await store.get("/k/b", revision=first.revision)
        with pytest.raises(Compacted):
            await store.watch("/k/", after=first.revision)
        await store.compact(await store.revision())
        with pytest.raises(Compacted):
            await store.get("/k/a", revision=first.revision)


@on_loop
async def test_a_replica_whose_history_was_compacted_away_reads_everything_anew(place: EtcdAccess) -> None:
    async with two(place) as (one, other):
        await one.create("/k/0", b"")
        watch = await other.watch("/k/", after=await other.revision())
        await other._follower.close()
        for number in range(1, 4):
            await one.create(f"/k/{number}", b"")
        await one.compact(await one.revision())
        other._follower.begin()
        with pytest.raises(WatcherTooSlow):
            await anext(watch)
        assert await other.count("/k/") == 4
        assert (await other.list("/k/")).revision >= 4


async def _lease_of(store: EtcdStore, key: str) -> int:
    (found,) = (await store._range(pb.RangeRequest(key=store._keys.of(key)))).kvs
    return found.lease


@on_loop
async def test_a_key_with_a_ttl_goes_by_itself_and_a_later_write_counts_anew(place: EtcdAccess) -> None:
    async with two(place) as (one, other):
        watch = await other.watch("/k/", after=await other.revision())
        short = WriteTerms(ttl=1.0)
        gone = [await one.create(f"/k/{number}", b"1", terms=short) for number in range(3)]
        kept = await one.create("/k/kept", b"1", terms=WriteTerms(ttl=600.0))
        assert await _lease_of(one, kept.key)
        kept = await other.update("/k/kept", b"2", expected=kept.revision)
        assert not await _lease_of(one, kept.key)
        seen = await read(watch, 8)
        ended = [event for event in seen if event.record is None]
        # Each in a revision of its own: who goes on after one of them misses none.
        assert len({event.revision for event in ended}) == 3
        assert sorted((event.key, event.previous) for event in ended) == sorted((each.key, each) for each in gone)
        assert (await one.list("/k/")).records == [kept]


@on_loop
async def test_of_two_guarded_writes_that_have_not_seen_each_other_one_is_refused(place: EtcdAccess) -> None:
    async with two(place) as (one, other):
        seen = (await one.create("/k/0", b"")).revision
        first = await one.create("/k/a", b"", terms=WriteTerms(guard=Guard(("x", "y"), seen)))
        with pytest.raises(Overtaken) as caught:
            await other.create("/k/b", b"", terms=WriteTerms(guard=Guard(("y", "z"), seen)))
        assert caught.value.revision == first.revision
        with pytest.raises(KeyNotFound):
            await one.get("/k/b")
        # Under other names, and by who has seen it, it may be written.
        await other.create("/k/c", b"", terms=WriteTerms(guard=Guard(("z",), seen)))
        again = await other.create("/k/b", b"", terms=WriteTerms(guard=Guard(("y",), first.revision)))
        # Of a key that has moved, a guard that holds does not distract.
        with pytest.raises(Conflict):
            await one.update("/k/a", b"", expected=seen, terms=WriteTerms(guard=Guard(("y",), again.revision)))
        assert await one.count("/k/") == 4


@on_loop
async def test_guarded_writes_at_random_are_as_if_one_came_after_the_other(place: EtcdAccess) -> None:
    """Each writer takes a number only if it has seen nobody take it: without the guard some would be taken twice."""

    async def take(store: EtcdStore, name: str, number: int) -> int:
        while True:
            page = await store.list("/taken/")
            if any(record.value == b"%d" % number for record in page.records):
                return 0
            terms = WriteTerms(guard=Guard((f"n{number}",), page.revision))
            try:
                await store.create(f"/taken/{name}", b"%d" % number, terms=terms)
            except Overtaken:
                continue
            return 1

    async with two(place) as (one, other):
        writers = [
            take(store, f"{number}-{who}-{turn}", number)
            for number in range(10)
            for turn in range(3)
            for who, store in enumerate((one, other))
        ]
        Random(5).shuffle(writers)
        assert sum(await asyncio.gather(*writers)) == 10
        assert sorted(int(each.value) for each in (await one.list("/taken/")).records) == [*range(10)]


@on_loop
async def test_the_reads_of_one_request_ask_etcd_once_and_those_of_the_next_anew(place: EtcdAccess) -> None:
    async with two(place) as (one, other):
        made = await one.create("/k/a", b"1")
        with request_reads():
            assert await other.get("/k/a") == made
            # What is written behind its back it may see or not; but a question after the revision is always new.
            moved = await one.update("/k/a", b"2", expected=made.revision)
            assert (await other.get("/k/a")).revision in (made.revision, moved.revision)
            assert await other.revision() >= moved.revision
            assert await other.get("/k/a") == moved
        moved = await one.update("/k/a", b"3", expected=moved.revision)
        with request_reads():
            assert await other.get("/k/a") == moved


@on_loop
async def test_several_keys_that_somebody_deletes_in_one_transaction_are_noticed(place: EtcdAccess) -> None:
    async with await EtcdStore.open(place) as store:
        for number in range(4):
            await store.create(f"/k/{number}", b"")
        watch = await store.watch("/k/", after=await store.revision())
        start, end = store._keys.range("/k/", "/k/0")
        every = pb.RequestOp(request_delete_range=pb.DeleteRangeRequest(key=start, range_end=end))
        await store._connection.endpoint.kv.Txn(pb.TxnRequest(success=[every]))
        assert (await anext(watch)).key == "/k/1"
        with pytest.raises(WatcherTooSlow):
            await anext(watch)
        assert [each.key for each in (await store.list("/k/")).records] == ["/k/0"]


@on_loop
async def test_a_prefix_of_a_newer_drakit_is_not_touched(place: EtcdAccess) -> None:
    async with await EtcdStore.open(place):
        pass
    connection = Connection(place)
    newer = pb.PutRequest(key=f"{place.prefix}/version".encode(), value=b'{"layout": 9}')
    await connection.endpoint.kv.Put(newer)
    await connection.close()
    with pytest.raises(SchemaTooNew, match="version 9"):
        await EtcdStore.open(place)


@on_loop
async def test_an_etcd_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="etcd does not answer"):
        await EtcdStore.open(EtcdAccess(endpoints=("http://127.0.0.1:1",)), patience=0)
    with pytest.raises(UsageError, match="--etcd-servers: 'ftp://x'"):
        await EtcdStore.open(EtcdAccess(endpoints=("ftp://x",)))
    with pytest.raises(UsageError, match="at least one"):
        await EtcdStore.open(EtcdAccess(endpoints=()))


@pytest.mark.parametrize(
    ("version", "trusted"),
    [((3, 4, 23), False), ((3, 4, 31), True), ((3, 5, 12), False), ((3, 5, 13), True), ((3, 6, 0), True), ((), False)],
)
def test_progress_is_trusted_where_the_server_gives_it_rightly(version: tuple[int, ...], trusted: bool) -> None:
    assert trusts_progress(version) is trusted


@pytest.fixture
def members(tmp_path: Path) -> Iterator[list[Member]]:
    with etcd_cluster(tmp_path, 3) as made:
        yield made


async def settled(store: EtcdStore, key: str) -> None:
    """Write until it works: an election takes its time."""
    for _ in range(2000):
        try:
            await store.create(key, b"")
        except StoreUnavailable:
            await asyncio.sleep(0.1)
        except KeyExists:
            return
        else:
            return
    raise AssertionError("etcd did not come back")


@pytest.mark.timeout(600)
@on_loop
async def test_a_member_that_dies_or_hangs_is_left_and_without_a_majority_writes_are_refused(
    members: list[Member],
) -> None:
    access = EtcdAccess(endpoints=tuple(each.client for each in members))
    async with await EtcdStore.open(access) as store:
        await settled(store, "/k/0")
        watch = await store.watch("/k/", after=await store.revision())
        members[0].kill()
        await settled(store, "/k/1")
        assert (await anext(watch)).key == "/k/1"
        members[1].pause()
        with pytest.raises(StoreUnavailable, match="etcd does not answer"):
            await store.create("/k/lost", b"")
        with pytest.raises(StoreUnavailable):
            await store.get("/k/0")
        with request_reads(accept_unverified=True) as reads:
            assert [each.key for each in (await store.list("/k/")).records] == ["/k/0", "/k/1"]
            assert (await store.get("/k/1")).value == b""
            assert reads.age is not None
            # Of what is newer than the copy nothing is told, not even that it is not there.
            with pytest.raises(FutureRevision):
                await store.get("/k/0", revision=await store.revision() + 1)
        with request_reads(accept_unverified=True), pytest.raises(StoreUnavailable):
            await store.create("/k/refused", b"")
        members[1].resume()
        members[0].start()
        await settled(store, "/k/2")
        # Every write is there once, in order, and none that was refused for good has come in between twice.
        keys = []
        while "/k/2" not in keys:
            keys.append((await anext(watch)).key)
        assert len(set(keys)) == len(keys)
        assert "/k/refused" not in keys
        with request_reads(accept_unverified=True) as reads:
            await store.get("/k/2")
        assert reads.age is None
        assert {"/k/0", "/k/1", "/k/2"} <= {each.key for each in (await store.list("/k/")).records}
