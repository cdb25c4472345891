"""Dispatch: an event touches the watches that it concerns, and no others."""

from __future__ import annotations

import asyncio

import pytest

from drakit.store import Record, StoreClosed, StoreEvent
from drakit.store.watches import BufferedWatch, Dispatcher


def event(revision: int, key: str) -> StoreEvent:
    return StoreEvent(revision, key, Record(key, b"", revision, revision), None)


def test_a_thousand_idle_watches_are_not_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    touched: list[str] = []
    push = BufferedWatch.push

    def noted(watch: BufferedWatch, event: StoreEvent) -> bool:
        touched.append(watch.prefix)
        return push(watch, event)

    monkeypatch.setattr(BufferedWatch, "push", noted)
    dispatcher = Dispatcher(0)
    for number in range(1000):
        dispatcher.add(f"/registry/pods/{number:04d}/", (), 10)
    dispatcher.dispatch(event(1, "/registry/pods/0007/web"))
    dispatcher.dispatch(event(2, "/registry/nodes/n"))
    assert touched == ["/registry/pods/0007/"]


def test_every_prefix_of_a_key_matches_the_empty_and_the_whole_one_too() -> None:
    dispatcher = Dispatcher(0)
    watches = {prefix: dispatcher.add(prefix, (), 10) for prefix in ("", "/", "/a", "/a/b", "/a/bc", "/b")}
    dispatcher.dispatch(event(1, "/a/b"))
    assert [prefix for prefix, watch in watches.items() if watch.progress == 0] == ["", "/", "/a", "/a/b"]


def test_a_removed_watch_leaves_its_neighbours_of_the_same_prefix_and_length() -> None:
    dispatcher = Dispatcher(0)
    gone, same, long = (dispatcher.add(prefix, (), 10) for prefix in ("/a", "/a", "/b"))
    dispatcher.remove(gone)
    dispatcher.remove(gone)
    dispatcher.dispatch(event(1, "/a"))
    dispatcher.dispatch(event(2, "/b"))
    assert (gone.progress, same.progress, long.progress) == (2, 0, 1)
    assert len(dispatcher) == 2


def test_a_watch_dropped_during_dispatch_leaves_the_others_served() -> None:
    dispatcher = Dispatcher(0)
    slow, quick = dispatcher.add("/", (), 0), dispatcher.add("/", (), 10)
    dispatcher.dispatch(event(1, "/a"))
    assert len(dispatcher) == 1
    assert (slow.progress, quick.progress) == (0, 0)


def test_closing_empties_the_dispatcher() -> None:
    dispatcher = Dispatcher(0)
    dispatcher.add("/", (), 10)
    dispatcher.close(StoreClosed())
    assert len(dispatcher) == 0
    assert not dispatcher.dispatch(event(1, "/a"))


def test_many_readers_of_one_event_go_on_some_at_a_time() -> None:
    """All have it in the end, and each event once; who closes while it waits for its turn holds nobody up."""

    async def run() -> None:
        dispatcher = Dispatcher(0)
        watches = [dispatcher.add("/", (), 10) for _ in range(300)]
        reading = [asyncio.create_task(watch.take()) for watch in watches]
        await asyncio.sleep(0)
        dispatcher.dispatch(event(1, "/a"))
        dispatcher.dispatch(event(2, "/b"))
        await watches[299].close()
        before = 1  # the one that was closed
        for _ in range(5):
            await asyncio.sleep(0)
            after = sum(each.done() for each in reading)
            assert after - before <= 64
            before = after
        assert before == 300
        got = await asyncio.gather(*reading)
        assert [[each.revision for each in events] for events in got] == [[1, 2]] * 299 + [[]]

    asyncio.run(run())
