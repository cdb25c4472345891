"""Contract: create, update and delete, over every engine."""

from __future__ import annotations

import asyncio

import pytest

from drakit.base import errors as base
from drakit.store import Conflict, EventType, KeyExists, KeyNotFound, Record, Store
from tests.store.engines import Engine, on_loop, read


@on_loop
async def test_an_empty_store_is_at_revision_one_and_each_write_has_the_next(engine: Engine) -> None:
    async with await engine.open() as store:
        assert await store.revision() == 1
        first = await store.create("/a", b"1")
        second = await store.create("/b", b"2")
        assert (first.revision, second.revision) == (2, 3)
        assert (await store.update("/a", b"3", expected=2)).revision == 4
        assert (await store.delete("/b", expected=3)).revision == 5
        assert await store.revision() == 5


@on_loop
async def test_create_returns_what_get_returns(engine: Engine) -> None:
    async with await engine.open() as store:
        made = await store.create("/a", b"1")
        assert made == Record("/a", b"1", created=2, revision=2)
        assert await store.get("/a") == made


@on_loop
async def test_create_of_an_existing_key_fails_and_says_what_is_there(engine: Engine) -> None:
    async with await engine.open() as store:
        made = await store.create("/a", b"1")
        with pytest.raises(KeyExists, match="/a already exists") as caught:
            await store.create("/a", b"2")
        assert caught.value.current == made
        assert isinstance(caught.value, base.AlreadyExists)
        assert await store.revision() == 2


@on_loop
async def test_update_keeps_the_revision_of_creation(engine: Engine) -> None:
    async with await engine.open() as store:
        await store.create("/a", b"1")
        await store.create("/b", b"1")
        changed = await store.update("/a", b"2", expected=2)
        assert changed == Record("/a", b"2", created=2, revision=4)
        assert await store.get("/a") == changed


@on_loop
async def test_update_of_a_moved_key_conflicts_and_says_what_is_there(engine: Engine) -> None:
    async with await engine.open() as store:
        await store.create("/a", b"1")
        current = await store.update("/a", b"2", expected=2)
        with pytest.raises(Conflict, match="expected revision 2, but it is at 3") as caught:
            await store.update("/a", b"3", expected=2)
        assert caught.value.current == current
        assert isinstance(caught.value, base.Conflict)
        assert await store.get("/a") == current


@on_loop
async def test_delete_returns_the_last_value_at_the_revision_of_the_deletion(engine: Engine) -> None:
    async with await engine.open() as store:
        await store.create("/a", b"1")
        await store.update("/a", b"2", expected=2)
        assert await store.delete("/a", expected=3) == Record("/a", b"2", created=2, revision=4)
        with pytest.raises(KeyNotFound, match="/a not found"):
            await store.get("/a")


@on_loop
async def test_delete_of_a_moved_key_conflicts(engine: Engine) -> None:
    async with await engine.open() as store:
        await store.create("/a", b"1")
        current = await store.update("/a", b"2", expected=2)
        with pytest.raises(Conflict) as caught:
            await store.delete("/a", expected=2)
        assert caught.value.current == current
        assert await store.get("/a") == current


@on_loop
async def test_what_is_not_there_can_be_neither_updated_nor_deleted(engine: Engine) -> None:
    async with await engine.open() as store:
        with pytest.raises(KeyNotFound):
            await store.update("/a", b"1", expected=1)
        with pytest.raises(KeyNotFound) as caught:
            await store.delete("/a", expected=2)
        assert isinstance(caught.value, base.NotFound)
        assert await store.revision() == 1


@on_loop
async def test_a_key_that_was_deleted_can_be_created_anew(engine: Engine) -> None:
    async with await engine.open() as store:
        await store.create("/a", b"1")
        await store.delete("/a", expected=2)
        assert await store.create("/a", b"2") == Record("/a", b"2", created=4, revision=4)


@on_loop
async def test_an_empty_value_is_a_value(engine: Engine) -> None:
    async with await engine.open() as store:
        await store.create("/a", b"")
        assert (await store.get("/a")).value == b""
        async with await store.watch("/", after=1) as watch:
            assert (await anext(watch)).type is EventType.CREATED


@pytest.mark.parametrize("key", ["", "/a/\ud800"])
@on_loop
async def test_keys_that_cannot_be_kept_are_refused(engine: Engine, key: str) -> None:
    async with await engine.open() as store:
        with pytest.raises(ValueError, match=r"must not be empty|surrogates"):
            await store.create(key, b"1")
        assert await store.revision() == 1


@on_loop
async def test_of_many_concurrent_creators_of_a_key_one_wins(engine: Engine) -> None:
    async with await engine.open() as store:
        outcomes = await asyncio.gather(*(store.create("/a", b"%d" % n) for n in range(20)), return_exceptions=True)
        winners = [outcome for outcome in outcomes if isinstance(outcome, Record)]
        losers = [outcome for outcome in outcomes if isinstance(outcome, KeyExists)]
        assert (len(winners), len(losers)) == (1, 19)
        assert await store.get("/a") == winners[0]
        assert all(loser.current == winners[0] for loser in losers)


async def _increment(store: Store, key: str) -> None:
    current = await store.get(key)
    while True:
        try:
            await store.update(key, b"%d" % (int(current.value) + 1), expected=current.revision)
        except Conflict as conflict:
            current = conflict.current
        else:
            return


@on_loop
async def test_concurrent_compare_and_swap_loses_no_update(engine: Engine) -> None:
    async with await engine.open() as store:
        await store.create("/n", b"0")
        await asyncio.gather(*(_increment(store, "/n") for _ in range(15)))
        assert (await store.get("/n")).value == b"15"
        assert await store.revision() == 17


@on_loop
async def test_concurrent_writes_have_distinct_revisions_in_watch_order(engine: Engine) -> None:
    async with await engine.open() as store, await store.watch("/", after=1) as watch:
        made = await asyncio.gather(*(store.create(f"/{n}", b"") for n in range(50)))
        assert sorted(record.revision for record in made) == list(range(2, 52))
        assert [event.revision for event in await read(watch, 50)] == list(range(2, 52))


@on_loop
async def test_a_write_is_seen_by_readers_when_its_call_returns(engine: Engine) -> None:
    async with await engine.open() as store:
        for number in range(5):
            made = await store.create(f"/k/{number}", b"")
            assert await store.get(made.key) == made
            assert (await store.list("/k/")).records[-1] == made
            assert await store.revision() == made.revision
