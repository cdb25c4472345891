"""A file that a process of its own writes: what was acknowledged stays, whoever is killed and whenever."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from drakit.store import SQLiteStore, StoreClosed, StoreLocked, StoreUnavailable, WriteInDoubt, journalprocess
from drakit.store.journal import Journal
from drakit.store.journalprocess import JournalProcess
from tests.store.engines import fill, on_loop


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


async def opened(path: Path) -> SQLiteStore:
    return await SQLiteStore.open(path, own_process=True)


def writer_of(store: SQLiteStore) -> int:
    assert isinstance(store._journal, JournalProcess)
    return store._journal.pid


def alive(pid: int) -> bool:
    """Whether it runs: one that nobody has waited for yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


async def read_back(path: Path) -> dict[str, bytes]:
    async with await SQLiteStore.open(path) as store:
        return {record.key: record.value for record in (await store.list("/")).records}


@on_loop
async def test_another_process_writes_the_file_and_ends_with_the_store(path: Path) -> None:
    async with await opened(path) as store:
        pid = writer_of(store)
        assert pid != os.getpid()
        assert (await store.create("/a", b"1")).revision == 2
    assert not alive(pid)
    assert await read_back(path) == {"/a": b"1"}


@on_loop
async def test_the_writer_is_killed_again_and_again_and_every_write_is_made_once(path: Path) -> None:
    made: list[int] = []
    async with await opened(path) as store, await store.watch("/", after=1) as watch:
        killed = asyncio.Event()

        async def write(number: int) -> None:
            step = 0
            while not killed.is_set():
                made.append((await store.create(f"/{number}/{step}", b"")).revision)
                step += 1

        async def kill() -> None:
            writers: set[int] = set()
            while len(writers) < 5:
                await asyncio.sleep(0.02)
                pid = writer_of(store)
                if pid not in writers:
                    writers.add(pid)
                    os.kill(pid, signal.SIGKILL)
            killed.set()

        await asyncio.gather(kill(), *(write(number) for number in range(8)))
        seen = [event.revision for event in await watch.take()]
    assert sorted(made) == seen == list(range(2, 2 + len(made)))
    assert len(await read_back(path)) == len(made)


@on_loop
async def test_a_write_that_was_on_disk_when_the_writer_died_is_not_made_again(path: Path) -> None:
    async with await opened(path) as store:
        journal = store._journal
        assert isinstance(journal, JournalProcess)
        # The answer is lost: the process has written, and dies before anybody hears of it.
        journal.__dict__["data_received"] = lambda _: os.kill(journal.pid, signal.SIGKILL)
        writing = asyncio.ensure_future(store.create("/a", b"1"))
        while journal._transport is not None:  # noqa: ASYNC110 - another process ends
            await asyncio.sleep(0.001)
        del journal.__dict__["data_received"]
        assert (await writing).revision == 2
        assert (await store.create("/b", b"2")).revision == 3
    assert await read_back(path) == {"/a": b"1", "/b": b"2"}


@on_loop
async def test_writes_fail_for_good_when_no_writer_can_be_started(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journalprocess, "_PAUSE", 0.0)
    async with await opened(path) as store:
        await store.create("/a", b"1")
        os.kill(writer_of(store), signal.SIGSTOP)
        writing = asyncio.ensure_future(store.create("/b", b"2"))
        await asyncio.sleep(0)
        monkeypatch.setattr(sys, "executable", "/bin/false")
        os.kill(writer_of(store), signal.SIGKILL)
        with pytest.raises(WriteInDoubt, match="ended at its start"):
            await writing
        with pytest.raises(StoreUnavailable, match="until the server starts again nothing can be written"):
            await store.create("/c", b"3")
        assert (await store.get("/a")).value == b"1"
        with pytest.raises(StoreUnavailable):
            await store.check_writes()


@on_loop
async def test_a_file_that_another_process_wrote_while_no_writer_lived_is_left_alone(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spawn = journalprocess._spawn

    def meddle(file: Path) -> object:
        journal = Journal.open(file)
        journal.append_rows([(3, "/theirs", b"1", 3)])
        journal.close()
        return spawn(file)

    async with await opened(path) as store:
        await store.create("/a", b"1")
        monkeypatch.setattr(journalprocess, "_spawn", meddle)
        os.kill(writer_of(store), signal.SIGKILL)
        while store._journal._broken is None:  # type: ignore[union-attr]  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.01)
        with pytest.raises(StoreUnavailable, match="was written by another process"):
            await store.create("/b", b"2")
    assert await read_back(path) == {"/a": b"1", "/theirs": b"1"}


@on_loop
async def test_a_second_store_is_told_that_the_file_is_in_use(path: Path) -> None:
    async with await opened(path) as store:
        with pytest.raises(StoreLocked):
            await opened(path)
        with pytest.raises(StoreLocked):
            await SQLiteStore.open(path)
        await store.create("/a", b"1")


@on_loop
async def test_a_closed_store_writes_what_it_took_and_nothing_after(path: Path) -> None:
    store = await opened(path)
    writes = [asyncio.ensure_future(store.create(f"/{number}", b"")) for number in range(50)]
    await asyncio.sleep(0)
    await store.close()
    assert [write.result().revision for write in writes] == list(range(2, 52))
    with pytest.raises(StoreClosed):
        await store.create("/late", b"")
    assert len(await read_back(path)) == 50


@on_loop
async def test_history_is_compacted_in_the_file_too(path: Path) -> None:
    async with await opened(path) as store:
        await fill(store, "/k/", 10)
        for number in range(5):
            record = await store.get(f"/k/{number:03d}")
            await store.delete(record.key, expected=record.revision)
        await store.compact(await store.revision())
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM log").fetchone() == (5,)
    connection.close()
    async with await opened(path) as store:  # its last rows are gone, and it goes on from the revision of then
        assert (await store.create("/new", b"")).revision == 17


@on_loop
async def test_an_error_of_the_file_has_its_words_and_the_next_write_may_succeed(path: Path) -> None:
    async with await opened(path) as store:
        await store.create("/a", b"1")
        journal = store._journal
        assert isinstance(journal, JournalProcess)
        outcome: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
        event = store._state.event(2, "/twice", b"1")  # a revision that is taken
        journal.append([event], outcome.set_result)
        error = await outcome
        assert isinstance(error, StoreUnavailable)
        assert "UNIQUE constraint failed" in str(error)
        assert (await store.create("/b", b"2")).revision == 3


SERVER = """
import asyncio, sys
from drakit.store import SQLiteStore

async def main():
    store = await SQLiteStore.open(sys.argv[1], own_process=True)
    print(store._journal.pid, flush=True)
    for number in range(10**6):
        await store.create(f"/{number:06d}", b"x")
        print(number, flush=True)

asyncio.run(main())
"""


def test_signals_to_the_whole_group_do_not_end_the_writer_and_the_end_of_the_server_does(path: Path) -> None:
    command = [sys.executable, "-c", SERVER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as server:
        assert server.stdout is not None
        writer = int(server.stdout.readline())
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(writer, number)
        heard = [int(server.stdout.readline()) for _ in range(20)]
        assert alive(writer)
        server.kill()
        heard += [int(line) for line in server.stdout.readlines() if line.endswith(b"\n")]
    while alive(writer):  # it ends by itself, a moment later
        time.sleep(0.01)
    assert set(asyncio.run(read_back(path))) >= {f"/{number:06d}" for number in heard}
