"""SQLite: concurrent writes share a commit; nobody sees a write, or an answer from it, before it is durable."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from drakit.store import (
    Conflict,
    KeyExists,
    KeyNotFound,
    SQLiteStore,
    StoreClosed,
    StoreEvent,
    StoreUnavailable,
    groupcommit,
    journalthread,
)
from drakit.store.journal import Journal
from tests.store.engines import fill, on_loop


class Disk:
    """Stands between store and journal: counts groups, holds them up, or fails them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.groups: list[int] = []
        self.fail = False
        self.started = threading.Event()
        self.go = threading.Event()
        self.go.set()
        append = Journal.append

        def slow_append(journal: Journal, events: Sequence[StoreEvent]) -> None:
            self.groups.append(len(events))
            self.started.set()
            self.go.wait()
            if self.fail:
                raise StoreUnavailable("the disk is gone")
            append(journal, events)

        monkeypatch.setattr(Journal, "append", slow_append)

    async def hold(self) -> None:
        """Let the next group get to the disk, but not onto it."""
        self.go.clear()
        self.started.clear()

    async def reached(self) -> None:
        await asyncio.to_thread(self.started.wait)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@on_loop
async def test_the_writes_of_one_turn_share_a_commit(path: Path, disk: Disk) -> None:
    async with await SQLiteStore.open(path) as store:
        await asyncio.gather(*(store.create(f"/{n}", b"") for n in range(100)))
    assert disk.groups == [100]


@on_loop
async def test_writers_that_go_on_at_once_keep_sharing(path: Path, disk: Disk) -> None:
    async with await SQLiteStore.open(path) as store:
        await asyncio.gather(*(fill(store, f"/{n}/", 5) for n in range(20)))
    assert disk.groups == [20] * 5


@on_loop
async def test_writes_that_come_while_the_disk_is_busy_wait_for_the_next_commit(path: Path, disk: Disk) -> None:
    async with await SQLiteStore.open(path) as store:
        await disk.hold()
        first = asyncio.ensure_future(store.create("/first", b""))
        await disk.reached()
        later = []
        for number in range(5):
            later.append(asyncio.ensure_future(store.create(f"/{number}", b"")))
            await asyncio.sleep(0)
        disk.go.set()
        assert (await first).revision == 2
        assert [record.revision for record in await asyncio.gather(*later)] == [3, 4, 5, 6, 7]
    assert disk.groups == [1, 5]


@on_loop
async def test_a_group_is_bounded_in_changes_and_bytes(path: Path, disk: Disk) -> None:
    async with await SQLiteStore.open(path) as store:
        await asyncio.gather(*(store.create(f"/{n}", b"") for n in range(groupcommit.MAX_CHANGES + 1)))
        big = bytes(groupcommit.MAX_BYTES // 2)
        await asyncio.gather(*(store.create(f"/big/{n}", big) for n in range(3)))
    assert disk.groups == [groupcommit.MAX_CHANGES, 1, 2, 1]


@on_loop
async def test_a_write_is_invisible_until_it_is_durable(path: Path, disk: Disk) -> None:
    async with await SQLiteStore.open(path) as store, await store.watch("/", after=1) as watch:
        await disk.hold()
        writing = asyncio.ensure_future(store.create("/a", b"1"))
        await disk.reached()
        with pytest.raises(KeyNotFound):
            await store.get("/a")
        assert (await store.revision(), await store.count("/"), watch.progress) == (1, 0, 1)
        disk.go.set()
        assert await store.get((await writing).key)


@on_loop
async def test_an_answer_about_a_key_waits_for_the_write_under_way(path: Path, disk: Disk) -> None:
    async with await SQLiteStore.open(path) as store:
        await disk.hold()
        first = asyncio.ensure_future(store.create("/a", b"1"))
        await disk.reached()
        second = asyncio.ensure_future(store.create("/a", b"2"))
        await asyncio.sleep(0)
        assert not second.done()
        disk.go.set()
        made = await first
        with pytest.raises(KeyExists) as caught:
            await second
        assert caught.value.current == made


@on_loop
async def test_when_a_write_fails_the_next_writer_of_the_key_gets_its_chance(path: Path, disk: Disk) -> None:
    async with await SQLiteStore.open(path) as store:
        await disk.hold()
        disk.fail = True
        first = asyncio.ensure_future(store.create("/a", b"1"))
        await disk.reached()
        second = asyncio.ensure_future(store.create("/a", b"2"))
        await asyncio.sleep(0)
        disk.go.set()
        with pytest.raises(StoreUnavailable, match="the disk is gone"):
            await first
        disk.fail = False
        assert (await second).value == b"2"
        assert (await store.get("/a")).revision == 2


@on_loop
async def test_a_failed_group_leaves_state_revision_and_watchers_as_they_were(path: Path, disk: Disk) -> None:
    async with await SQLiteStore.open(path) as store, await store.watch("/", after=1) as watch:
        kept = await store.create("/a", b"1")
        disk.fail = True
        calls = (store.create("/b", b""), store.update("/a", b"2", expected=2), store.create("/c", b""))
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [StoreUnavailable] * 3
        assert len({id(outcome) for outcome in outcomes}) == 3
        with pytest.raises(StoreUnavailable):
            await store.delete("/a", expected=2)
        assert (await store.list("/")).records == [kept]
        disk.fail = False
        assert (await store.update("/a", b"3", expected=2)).revision == 3
        assert [event.revision for event in await watch.take()] == [2, 3]


@on_loop
async def test_a_cancelled_writer_takes_nothing_back(path: Path, disk: Disk) -> None:
    async with await SQLiteStore.open(path) as store:
        await disk.hold()
        writing = asyncio.ensure_future(store.create("/a", b"1"))
        await disk.reached()
        rival = asyncio.ensure_future(store.create("/a", b"2"))
        await asyncio.sleep(0)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        assert not rival.done()
        disk.go.set()
        with pytest.raises(KeyExists) as caught:
            await rival
        assert caught.value.current.value == b"1"
    async with await SQLiteStore.open(path) as store:
        assert (await store.get("/a")).value == b"1"


@on_loop
async def test_closing_waits_for_queued_groups_and_refuses_those_who_waited_for_a_key(path: Path, disk: Disk) -> None:
    store = await SQLiteStore.open(path)
    await disk.hold()
    first = asyncio.ensure_future(store.create("/a", b"1"))
    await disk.reached()
    queued = asyncio.ensure_future(store.create("/b", b"1"))
    waiting = asyncio.ensure_future(store.update("/a", b"2", expected=2))
    await asyncio.sleep(0)
    closing = asyncio.ensure_future(store.close())
    await asyncio.sleep(0)
    assert not closing.done()
    disk.go.set()
    await closing
    assert ((await first).revision, (await queued).revision) == (2, 3)
    with pytest.raises(StoreClosed):
        await waiting


@on_loop
async def test_a_conflict_is_decided_by_the_order_of_the_calls(path: Path, disk: Disk) -> None:
    async with await SQLiteStore.open(path) as store:
        await store.create("/a", b"0")
        outcomes = await asyncio.gather(
            store.update("/a", b"1", expected=2), store.update("/a", b"2", expected=2), return_exceptions=True
        )
        assert isinstance(outcomes[1], Conflict)
        assert outcomes[1].current == outcomes[0]
    assert disk.groups == [1, 1]


@on_loop
async def test_a_bug_in_the_journal_reaches_the_writer_and_no_further(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(journal: Journal, events: Sequence[StoreEvent]) -> None:
        raise TypeError("oops")

    async with await SQLiteStore.open(path) as store:
        with monkeypatch.context() as patch:
            patch.setattr(Journal, "append", broken)
            with pytest.raises(StoreUnavailable, match="the write failed: oops"):
                await store.create("/a", b"1")
        assert (await store.create("/a", b"1")).revision == 2


@on_loop
async def test_a_loop_that_never_rests_steps_aside_for_a_write_that_takes_long(
    path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    def step_aside(outcomes: object, timeout: float) -> None:
        waits.append(timeout)
        if len(waits) == 3:
            disk.go.set()

    monkeypatch.setattr(journalthread, "wait", step_aside)
    async with await SQLiteStore.open(path) as store:
        await disk.hold()
        assert (await store.create("/a", b"1")).revision == 2
        assert waits[:3] == [journalthread.STEP_ASIDE] * 3
