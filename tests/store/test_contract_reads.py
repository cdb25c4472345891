"""Contract: get and list, now and at a revision, over every engine."""

from __future__ import annotations

import pytest

from drakit.store import FutureRevision, KeyNotFound, RecordPage
from tests.store.engines import Engine, fill, on_loop


def keys(page: RecordPage) -> list[str]:
    return [record.key for record in page.records]


@on_loop
async def test_list_is_in_key_order_and_stays_within_the_prefix(engine: Engine) -> None:
    async with await engine.open() as store:
        for key in ("/p/b", "/p/a", "/q/a", "/p", "/p/a/x", "/p0", "/p/ü"):
            await store.create(key, b"")
        page = await store.list("/p/")
        assert keys(page) == ["/p/a", "/p/a/x", "/p/b", "/p/ü"]
        assert (page.revision, page.remaining) == (8, 0)
        assert keys(await store.list("")) == ["/p", "/p/a", "/p/a/x", "/p/b", "/p/ü", "/p0", "/q/a"]


@on_loop
async def test_an_empty_range_still_says_its_revision(engine: Engine) -> None:
    async with await engine.open() as store:
        await store.create("/a", b"")
        assert await store.list("/none/") == RecordPage([], 2, 0)


@on_loop
async def test_pages_cover_the_range_and_count_what_remains(engine: Engine) -> None:
    async with await engine.open() as store:
        await fill(store, "/k/", 25)
        await fill(store, "/other/", 5)
        seen, after, remaining = [], "", []
        while True:
            page = await store.list("/k/", limit=10, after=after)
            seen += keys(page)
            remaining.append(page.remaining)
            if not page.remaining:
                break
            after = page.records[-1].key
        assert seen == [f"/k/{n:03d}" for n in range(25)]
        assert remaining == [15, 5, 0]


@on_loop
async def test_pages_at_a_revision_are_one_snapshot_whatever_is_written_meanwhile(engine: Engine) -> None:
    async with await engine.open() as store:
        await fill(store, "/k/", 6)
        first = await store.list("/k/", limit=2)
        await store.delete("/k/003", expected=5)
        await store.update("/k/004", b"new", expected=6)
        await store.create("/k/002a", b"new")
        await store.delete("/k/000", expected=2)
        rest = await store.list("/k/", revision=first.revision, limit=3, after="/k/001")
        assert [(record.key, record.value) for record in rest.records] == [
            ("/k/002", b"2"),
            ("/k/003", b"3"),
            ("/k/004", b"4"),
        ]
        assert (rest.revision, rest.remaining) == (7, 1)
        assert keys(await store.list("/k/", limit=3, after="/k/001")) == ["/k/002", "/k/002a", "/k/004"]


@on_loop
async def test_every_revision_of_a_key_can_be_read(engine: Engine) -> None:
    async with await engine.open() as store:
        await store.create("/a", b"1")
        await store.update("/a", b"2", expected=2)
        await store.delete("/a", expected=3)
        await store.create("/a", b"4")
        assert [(await store.get("/a", revision=at)).value for at in (2, 3, 5)] == [b"1", b"2", b"4"]
        for at in (1, 4):
            with pytest.raises(KeyNotFound):
                await store.get("/a", revision=at)
            assert keys(await store.list("/", revision=at)) == []


@on_loop
async def test_a_key_changed_and_deleted_since_is_listed_as_it_was(engine: Engine) -> None:
    async with await engine.open() as store:
        await store.create("/a", b"1")
        await store.update("/a", b"2", expected=2)
        await store.delete("/a", expected=3)
        assert [record.value for record in (await store.list("/", revision=2)).records] == [b"1"]


@on_loop
async def test_a_revision_that_has_not_come_yet_is_refused(engine: Engine) -> None:
    async with await engine.open() as store:
        await store.create("/a", b"1")
        with pytest.raises(FutureRevision, match="revision 3 is too large: the store is at 2") as caught:
            await store.get("/a", revision=3)
        assert caught.value.current == 2
        with pytest.raises(FutureRevision):
            await store.list("/", revision=3)
        with pytest.raises(FutureRevision):
            await store.watch("/", after=3)


@on_loop
async def test_count_follows_creation_and_deletion(engine: Engine) -> None:
    async with await engine.open() as store:
        await fill(store, "/k/", 3)
        await store.create("/j", b"")
        await store.delete("/k/001", expected=3)
        assert await store.count("/k/") == 2
        assert await store.count("") == 3
        assert (await store.stats()).keys == 3


@on_loop
async def test_written_grows_with_every_write_under_the_prefix_and_with_no_other(engine: Engine) -> None:
    async with await engine.open() as store:
        await store.create("/p/a", b"")
        seen = [store.last_write_revision("/p/")]
        await store.create("/q/a", b"")
        assert store.last_write_revision("/p/") == seen[0]
        made = await store.create("/p/b", b"")
        seen.append(store.last_write_revision("/p/"))
        changed = await store.update("/p/b", b"x", expected=made.revision)
        seen.append(store.last_write_revision("/p/"))
        await store.delete("/p/b", expected=changed.revision)
        seen.append(store.last_write_revision("/p/"))
        assert seen == sorted(set(seen))
