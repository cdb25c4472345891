"""What etcd brings beyond the contract: stores that share one truth, members that fail, neighbours."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from drakit.base.errors import UsageError
from drakit.store import (
    Compacted,
    Conflict,
    KeyExists,
    KeyNotFound,
    Retention,
    SchemaTooNew,
    StoreUnavailable,
    WatcherTooSlow,
)
from drakit.store.etcd import EtcdAccess, EtcdStore
from drakit.store.etcd import etcd_pb2 as pb
from drakit.store.etcd.connection import Connection
from drakit.store.etcd.engine import trusts_progress
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
        await EtcdStore.open(EtcdAccess(endpoints=("http://127.0.0.1:1",)))
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
    for _ in range(100):
        try:
            await store.create(key, b"")
        except StoreUnavailable:
            await asyncio.sleep(0.1)
        except KeyExists:
            return
        else:
            return
    raise AssertionError("etcd did not come back")


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
        process = members[1].process
        assert process is not None
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(StoreUnavailable, match="etcd does not answer"):
            await store.create("/k/lost", b"")
        with pytest.raises(StoreUnavailable):
            await store.get("/k/0")
        process.send_signal(signal.SIGCONT)
        members[0].start()
        await settled(store, "/k/2")
        # Every write is there once, in order, and none that was refused for good has come in between twice.
        keys = []
        while "/k/2" not in keys:
            keys.append((await anext(watch)).key)
        assert len(set(keys)) == len(keys)
        assert {"/k/0", "/k/1", "/k/2"} <= {each.key for each in (await store.list("/k/")).records}
