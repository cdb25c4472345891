"""Contract: compaction and the bounds of history, over every engine."""

from __future__ import annotations

import pytest

from drakit.base.clock import FakeClock
from drakit.store import Compacted, FutureRevision, KeyNotFound, Retention
from tests.store.engines import UNBOUNDED, Engine, fill, on_loop, read


@on_loop
async def test_revisions_before_the_compacted_one_are_too_old(engine: Engine) -> None:
    async with await engine.open() as store:
        await fill(store, "/k/", 5)
        await store.compact(4)
        with pytest.raises(Compacted, match="revision 3 is too old") as caught:
            await store.list("/k/", revision=3)
        assert (caught.value.revision, caught.value.compacted) == (3, 4)
        with pytest.raises(Compacted):
            await store.get("/k/000", revision=3)
        with pytest.raises(Compacted):
            await store.watch("/k/", after=3)
        with pytest.raises(Compacted):
            await store.compact(3)


@on_loop
async def test_the_compacted_revision_itself_and_later_ones_can_be_read(engine: Engine) -> None:
    async with await engine.open() as store:
        await store.create("/a", b"1")
        await store.update("/a", b"2", expected=2)
        await store.update("/a", b"3", expected=3)
        await store.compact(3)
        assert (await store.get("/a", revision=3)).value == b"2"
        assert (await store.get("/a")).value == b"3"
        async with await store.watch("/", after=3) as watch:
            event = await anext(watch)
            assert (event.revision, event.previous_value) == (4, b"2")


@on_loop
async def test_compaction_keeps_current_state_and_revision(engine: Engine) -> None:
    async with await engine.open() as store:
        await fill(store, "/k/", 3)
        await store.delete("/k/001", expected=3)
        await store.compact(5)
        await store.compact(5)
        page = await store.list("/k/")
        assert ([record.value for record in page.records], page.revision) == ([b"0", b"2"], 5)
        assert (await store.create("/k/001", b"again")).revision == 6
        with pytest.raises(KeyNotFound):
            await store.get("/k/001", revision=5)


@on_loop
async def test_the_future_cannot_be_compacted(engine: Engine) -> None:
    async with await engine.open() as store:
        with pytest.raises(FutureRevision):
            await store.compact(2)


@on_loop
async def test_a_watch_that_has_started_gets_what_was_compacted_meanwhile(engine: Engine) -> None:
    async with await engine.open() as store:
        await fill(store, "/k/", 3)
        async with await store.watch("/k/", after=1) as watch:
            await store.compact(4)
            assert [event.revision for event in await read(watch, 3)] == [2, 3, 4]


@on_loop
async def test_history_is_bounded_by_number(engine: Engine) -> None:
    async with await engine.open(retention=Retention(events=10, seconds=None)) as store:
        await fill(store, "/k/", 25)
        stats = await store.stats()
        assert (stats.history_events, stats.compacted, stats.keys) == (10, 16, 25)
        with pytest.raises(Compacted):
            await store.watch("/k/", after=15)
        async with await store.watch("/k/", after=16) as watch:
            assert len(await watch.take()) == 10


@on_loop
async def test_history_is_bounded_by_bytes(engine: Engine) -> None:
    async with await engine.open(retention=Retention(bytes=20_000, seconds=None)) as store:
        await store.create("/a", b"x" * 3000)
        for revision in range(2, 11):
            await store.update("/a", b"x" * 3000, expected=revision)
            assert (await store.stats()).history_bytes <= 20_000
        assert (await store.stats()).history_events == 3
        await store.update("/a", b"x" * 30_000, expected=11)
        assert (await store.stats()).history_events == 0
        async with await store.watch("/a", after=12) as watch:
            assert watch.progress == 12


@on_loop
async def test_history_is_bounded_by_age(engine: Engine) -> None:
    clock = FakeClock()
    async with await engine.open(clock=clock, retention=Retention(seconds=60)) as store:
        await store.create("/a", b"")
        clock.advance(40)
        await store.create("/b", b"")
        clock.advance(20)
        await store.create("/c", b"")
        assert (await store.stats()).compacted == 1
        clock.advance(1)
        await store.create("/d", b"")
        assert (await store.stats()).compacted == 2


@on_loop
async def test_without_bounds_history_is_whole(engine: Engine) -> None:
    async with await engine.open(retention=UNBOUNDED) as store:
        await fill(store, "/k/", 50)
        async with await store.watch("", after=1) as watch:
            assert len(await watch.take()) == 50
