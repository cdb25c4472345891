"""Contract: closing, over every engine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from drakit.store import Store, StoreClosed
from tests.store.engines import Engine, on_loop, read

CALLS: dict[str, Callable[[Store], Awaitable[Any]]] = {
    "revision": lambda store: store.revision(),
    "create": lambda store: store.create("/b", b""),
    "update": lambda store: store.update("/a", b"", expected=2),
    "delete": lambda store: store.delete("/a", expected=2),
    "get": lambda store: store.get("/a"),
    "list": lambda store: store.list("/"),
    "count": lambda store: store.count("/"),
    "watch": lambda store: store.watch("/", after=1),
    "compact": lambda store: store.compact(2),
    "stats": lambda store: store.stats(),
}


@pytest.mark.parametrize("call", CALLS)
@on_loop
async def test_a_closed_store_says_so(engine: Engine, call: str) -> None:
    store = await engine.open()
    await store.create("/a", b"1")
    await store.close()
    with pytest.raises(StoreClosed, match="the store is closed"):
        await CALLS[call](store)


@on_loop
async def test_closing_twice_or_at_the_same_time_is_closing_once(engine: Engine) -> None:
    store = await engine.open()
    await store.create("/a", b"1")
    await asyncio.gather(store.close(), store.close())
    await store.close()


@on_loop
async def test_writes_under_way_are_finished_first(engine: Engine) -> None:
    store = await engine.open()
    watch = await store.watch("/", after=1)
    writing = [asyncio.ensure_future(store.create(f"/{n}", b"")) for n in range(20)]
    await asyncio.sleep(0)
    await store.close()
    assert sorted([(await write).revision for write in writing]) == list(range(2, 22))
    assert len(await watch.take()) == 20


@on_loop
async def test_watchers_read_what_is_there_and_then_learn_that_the_store_is_closed(engine: Engine) -> None:
    store = await engine.open()
    idle, behind = await store.watch("/none", after=1), await store.watch("/", after=1)
    waiting = asyncio.ensure_future(anext(idle))
    await asyncio.sleep(0)
    await store.create("/a", b"1")
    await store.close()
    with pytest.raises(StoreClosed):
        await waiting
    assert [event.key for event in await read(behind, 1)] == ["/a"]
    with pytest.raises(StoreClosed):
        await anext(behind)
    assert behind.progress == idle.progress == 2


@on_loop
async def test_a_watch_can_be_closed_after_its_store(engine: Engine) -> None:
    store = await engine.open()
    watch = await store.watch("/", after=1)
    await store.close()
    await watch.close()
