"""Contract: watches, over every engine."""

from __future__ import annotations

import asyncio

import pytest

from drakit.base.errors import Retryable
from drakit.store import EventType, WatcherTooSlow
from tests.store.engines import Engine, fill, on_loop, read


@on_loop
async def test_events_tell_what_was_before_and_what_is_now(engine: Engine) -> None:
    async with await engine.open() as store, await store.watch("/", after=1) as watch:
        await store.create("/a", b"1")
        await store.update("/a", b"2", expected=2)
        await store.delete("/a", expected=3)
        seen = [(e.type, e.revision, e.key, e.previous_value, e.value) for e in await read(watch, 3)]
        assert seen == [
            (EventType.CREATED, 2, "/a", None, b"1"),
            (EventType.MODIFIED, 3, "/a", b"1", b"2"),
            (EventType.DELETED, 4, "/a", b"2", None),
        ]


@on_loop
async def test_a_watch_begins_after_its_revision_and_goes_on_live_without_gap_or_duplicate(engine: Engine) -> None:
    async with await engine.open() as store:
        await fill(store, "/k/", 5)
        async with await store.watch("/k/", after=3) as watch:
            await fill(store, "/k/live", 5)
            assert [event.revision for event in await read(watch, 8)] == list(range(4, 12))


@on_loop
async def test_a_watch_sees_its_prefix_alone(engine: Engine) -> None:
    async with await engine.open() as store, await store.watch("/p/", after=1) as watch:
        for key in ("/q/a", "/p/a", "/p", "/pp/a", "/p/b"):
            await store.create(key, b"")
        assert [event.key for event in await read(watch, 2)] == ["/p/a", "/p/b"]


@on_loop
async def test_watchers_share_one_event_object(engine: Engine) -> None:
    async with await engine.open() as store:
        watches = [await store.watch(prefix, after=1) for prefix in ("", "/", "/a", "/a")]
        await store.create("/a", b"1")
        first = await anext(watches[0])
        assert all([await anext(watch) is first for watch in watches[1:]])
        assert await anext(await store.watch("/", after=1)) is first


@on_loop
async def test_a_waiting_reader_is_woken_by_a_write(engine: Engine) -> None:
    async with await engine.open() as store, await store.watch("/", after=1) as watch:
        reading = asyncio.ensure_future(anext(watch))
        await asyncio.sleep(0)
        assert not reading.done()
        made = await store.create("/a", b"1")
        assert (await reading).record == made


@on_loop
async def test_a_cancelled_read_loses_no_event(engine: Engine) -> None:
    async with await engine.open() as store, await store.watch("/", after=1) as watch:
        reading = asyncio.ensure_future(anext(watch))
        await asyncio.sleep(0)
        writing = asyncio.ensure_future(store.create("/a", b"1"))
        while (await store.stats()).revision == 1:  # noqa: ASYNC110 -- to be back in the very turn of the event
            await asyncio.sleep(0)
        reading.cancel()  # it was woken in this turn, but has not run
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert (await anext(watch)).key == "/a"
        await writing


@on_loop
async def test_take_returns_all_that_is_there(engine: Engine) -> None:
    async with await engine.open() as store, await store.watch("/", after=1) as watch:
        taking = asyncio.ensure_future(watch.take())
        await store.create("/a", b"1")
        assert [event.key for event in await taking] == ["/a"]
        await fill(store, "/k/", 3)
        assert [event.revision for event in await watch.take()] == [3, 4, 5]


@on_loop
async def test_progress_stops_before_the_first_event_that_was_not_read(engine: Engine) -> None:
    async with await engine.open() as store:
        await fill(store, "/other/", 2)
        async with await store.watch("/k/", after=2) as watch:
            assert watch.progress == 3
            await fill(store, "/k/", 2)
            await fill(store, "/more/", 2)
            assert watch.progress == 3
            await anext(watch)
            assert watch.progress == 4
            await anext(watch)
            assert watch.progress == 7


@on_loop
async def test_progress_counts_unread_events_of_the_past(engine: Engine) -> None:
    async with await engine.open() as store:
        await fill(store, "/k/", 3)
        async with await store.watch("/k/", after=2) as watch:
            assert watch.progress == 2
            await read(watch, 2)
            assert watch.progress == 4


@on_loop
async def test_a_slow_watcher_is_dropped_and_told_where_it_was(engine: Engine) -> None:
    async with await engine.open() as store:
        slow = await store.watch("/k/", after=1, buffer=3)
        quick = await store.watch("/k/", after=1)
        await store.create("/k/first", b"")
        await anext(slow)
        await fill(store, "/k/", 4)
        with pytest.raises(WatcherTooSlow, match="more than 3 events behind") as caught:
            await anext(slow)
        assert isinstance(caught.value, Retryable)
        assert caught.value.progress == slow.progress == 2
        assert len(await quick.take()) == 5
        assert (await store.stats()).watchers == 1
        again = await store.watch("/k/", after=caught.value.progress)
        assert [event.revision for event in await again.take()] == [3, 4, 5, 6]


@on_loop
async def test_a_reader_that_waits_is_woken_when_its_watch_was_dropped(engine: Engine) -> None:
    async with await engine.open() as store:
        watch = await store.watch("/", after=1, buffer=0)
        reading = asyncio.ensure_future(anext(watch))
        await asyncio.sleep(0)
        await store.create("/a", b"")
        with pytest.raises(WatcherTooSlow):
            await reading


@on_loop
async def test_the_past_does_not_count_against_the_buffer(engine: Engine) -> None:
    async with await engine.open() as store:
        await fill(store, "/k/", 10)
        async with await store.watch("/k/", after=1, buffer=2) as watch:
            await fill(store, "/k/new", 2)
            assert [event.revision for event in await watch.take()] == list(range(2, 14))
            await fill(store, "/k/newer", 3)
            with pytest.raises(WatcherTooSlow):  # the room of the past is gone with the past
                await watch.take()


@on_loop
async def test_a_reader_that_keeps_up_is_never_dropped_by_a_burst(engine: Engine) -> None:
    async with await engine.open() as store, await store.watch("/k/", after=1, buffer=4) as watch:
        reading = asyncio.ensure_future(read(watch, 300))
        await asyncio.sleep(0)
        if engine.name == "memory":
            await fill(store, "/k/", 300)
        else:
            await asyncio.gather(*(store.create(f"/k/{n}", b"") for n in range(300)))
        assert [event.revision for event in await reading] == list(range(2, 302))


@on_loop
async def test_closing_a_watch_ends_its_reader_and_frees_its_place(engine: Engine) -> None:
    async with await engine.open() as store:
        watch = await store.watch("/", after=1)
        reading = asyncio.ensure_future(watch.take())
        await asyncio.sleep(0)
        await watch.close()
        assert await reading == ()
        assert [event async for event in watch] == []
        await watch.close()
        await store.create("/a", b"")
        assert await watch.take() == ()
        assert (await store.stats()).watchers == 0


@on_loop
async def test_a_second_reader_of_one_watch_is_told_off(engine: Engine) -> None:
    async with await engine.open() as store, await store.watch("/", after=1) as watch:
        reading = asyncio.ensure_future(anext(watch))
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="has a reader already"):
            await anext(watch)
        await store.create("/a", b"")
        assert (await reading).key == "/a"
