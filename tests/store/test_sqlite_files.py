"""SQLite: what is in the file after a restart, and files that cannot be opened."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from drakit.store import (
    Compacted,
    Corrupt,
    EventType,
    Record,
    Retention,
    SchemaTooNew,
    SQLiteStore,
    StoreLocked,
    StoreUnavailable,
)
from drakit.store import sqlite as engine
from tests.store.engines import UNBOUNDED, connection_of, fill, on_loop, read

NOBODY = 65534


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def content(path: Path) -> bytes:
    return path.read_bytes()


def write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def rows(path: Path) -> list[int]:
    with closing(sqlite3.connect(path)) as connection:
        return [revision for (revision,) in connection.execute("SELECT revision FROM log ORDER BY revision")]


@on_loop
async def test_state_history_and_revision_survive_a_restart(path: Path) -> None:
    async with await SQLiteStore.open(path) as store:
        await store.create("/a", b"1")
        await store.create("/b", b"2")
        await store.update("/a", b"3", expected=2)
        await store.delete("/b", expected=3)
    async with await SQLiteStore.open(path) as store:
        assert await store.revision() == 5
        assert (await store.list("/")).records == [Record("/a", b"3", created=2, revision=4)]
        assert (await store.get("/b", revision=4)).value == b"2"
        async with await store.watch("/", after=3) as watch:
            events = await watch.take()
            assert [(event.type, event.previous_value) for event in events] == [
                (EventType.MODIFIED, b"1"),
                (EventType.DELETED, b"2"),
            ]
        assert (await store.create("/b", b"5")).revision == 6


@on_loop
async def test_the_revision_does_not_go_back_when_the_latest_writes_were_deletions_and_compacted(path: Path) -> None:
    async with await SQLiteStore.open(path) as store:
        await store.create("/a", b"1")
        await store.delete("/a", expected=2)
        await store.compact(3)
    assert rows(path) == []
    async with await SQLiteStore.open(path) as store:
        assert await store.revision() == 3
        with pytest.raises(Compacted):
            await store.watch("/", after=2)


@on_loop
async def test_compaction_deletes_exactly_the_rows_that_nothing_refers_to(path: Path) -> None:
    async with await SQLiteStore.open(path) as store:
        await store.create("/a", b"1")
        await store.create("/b", b"2")
        await store.update("/a", b"3", expected=2)
        await store.delete("/b", expected=3)
        await store.update("/a", b"5", expected=4)
        await store.compact(5)
    assert rows(path) == [4, 6]
    async with await SQLiteStore.open(path) as store:
        assert (await store.get("/a", revision=5)).value == b"3"


@on_loop
async def test_a_bounded_history_bounds_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "SWEEP_AT", 10)
    async with await SQLiteStore.open(path, retention=Retention(events=5)) as store:
        current = await store.create("/a", b"x")
        for _ in range(100):
            current = await store.update("/a", b"x", expected=current.revision)
    assert len(rows(path)) <= 16


@on_loop
async def test_a_longer_history_than_wanted_is_cut_when_a_file_is_opened(path: Path) -> None:
    async with await SQLiteStore.open(path, retention=UNBOUNDED) as store:
        current = await store.create("/a", b"x")
        for _ in range(20):
            current = await store.update("/a", b"x", expected=current.revision)
    async with await SQLiteStore.open(path, retention=Retention(events=5)) as store:
        stats = await store.stats()
        assert (stats.history_events, stats.compacted, stats.revision) == (5, 17, 22)
        await store.compact(21)
    assert rows(path) == [21, 22]


@on_loop
async def test_only_the_owner_may_read_the_file(path: Path) -> None:
    async with await SQLiteStore.open(path) as store:
        await store.create("/secret", b"1")
        for file in path.parent.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


@on_loop
async def test_a_closed_store_leaves_one_file(path: Path) -> None:
    async with await SQLiteStore.open(path) as store:
        await store.create("/a", b"1")
    assert [file.name for file in path.parent.iterdir()] == ["store.db"]


@on_loop
async def test_every_commit_is_flushed_to_disk(path: Path) -> None:
    async with await SQLiteStore.open(path) as store:
        connection = connection_of(store)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)


@on_loop
async def test_a_file_of_a_newer_schema_is_refused_and_left_alone(path: Path) -> None:
    async with await SQLiteStore.open(path) as store:
        await store.create("/a", b"1")
    change(path, "PRAGMA user_version = 3")
    before = content(path)
    with pytest.raises(SchemaTooNew, match="schema version 3, written by a newer drakit; this one knows 2"):
        await SQLiteStore.open(path)
    assert content(path) == before


@on_loop
async def test_a_file_that_is_open_elsewhere_in_this_process_is_locked(path: Path) -> None:
    async with await SQLiteStore.open(path) as store:
        for _ in range(2):  # the failed attempt must not have taken the first store's lock away
            with pytest.raises(StoreLocked, match="is locked"):
                await SQLiteStore.open(path)
        await store.create("/a", b"1")
    async with await SQLiteStore.open(path) as store:
        assert await store.count("/") == 1


HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA locking_mode = EXCLUSIVE")
connection.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""
OPEN = """
import asyncio, sys
from drakit.store import SQLiteStore, StoreLocked
try:
    asyncio.run(SQLiteStore.open(sys.argv[1]))
except StoreLocked as error:
    print(error)
"""


@contextmanager
def held_elsewhere(path: Path) -> Iterator[None]:
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        yield
        holder.kill()


@on_loop
async def test_a_file_that_another_process_has_is_locked_until_that_ends(path: Path) -> None:
    async with await SQLiteStore.open(path) as store:
        await store.create("/a", b"1")
    with held_elsewhere(path), pytest.raises(StoreLocked):
        await SQLiteStore.open(path)
    async with await SQLiteStore.open(path) as store:
        assert await store.count("/") == 1


@on_loop
async def test_a_second_process_is_kept_out_while_the_store_is_open(path: Path) -> None:
    async with await SQLiteStore.open(path) as store:
        await store.create("/a", b"1")
        command = [sys.executable, "-c", OPEN, str(path)]
        answer = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True)
        assert "is locked" in answer.stdout
        await store.create("/b", b"1")


@on_loop
async def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path) -> None:
    write(path, b"apiVersion: v1\n" * 1000)
    with pytest.raises(Corrupt, match="no SQLite file"):
        await SQLiteStore.open(path)
    assert content(path) == b"apiVersion: v1\n" * 1000


@on_loop
async def test_a_database_of_something_else_is_refused_and_left_alone(path: Path) -> None:
    change(path, "CREATE TABLE songs (title TEXT)")
    before = content(path)
    with pytest.raises(Corrupt, match="but no drakit store"):
        await SQLiteStore.open(path)
    assert content(path) == before


DAMAGE = {
    "a write is missing": "DELETE FROM log WHERE revision = 3",
    "a key is no text": "UPDATE log SET key = x'00' WHERE revision = 3",
    "a key is no unicode": "UPDATE log SET key = CAST(x'ff' AS TEXT) WHERE revision = 3",
    "a value is no blob": "UPDATE log SET value = 7 WHERE revision = 3",
    "a deletion deletes nothing": "UPDATE log SET key = '/other' WHERE revision = 4",
    "a creation is misdated": "UPDATE log SET created = 2 WHERE revision = 3",
    "the compaction is unknown": "DELETE FROM compaction",
    "the log is gone": "DROP TABLE log",
}


@pytest.mark.parametrize("damage", DAMAGE)
@on_loop
async def test_a_damaged_file_is_refused_and_left_alone(path: Path, damage: str) -> None:
    async with await SQLiteStore.open(path) as store:
        await fill(store, "/k/", 2)
        await store.delete("/k/001", expected=3)
    change(path, DAMAGE[damage])
    before = content(path)
    with pytest.raises(Corrupt, match="damaged"):
        await SQLiteStore.open(path)
    assert content(path) == before


@on_loop
async def test_overwritten_pages_are_noticed(path: Path) -> None:
    async with await SQLiteStore.open(path) as store:
        await fill(store, "/k/", 300)
    pages = bytearray(content(path))
    pages[4096 * 2 :] = b"\x5a" * (len(pages) - 4096 * 2)
    write(path, bytes(pages))
    with pytest.raises(Corrupt):
        await SQLiteStore.open(path)


@on_loop
async def test_a_missing_directory_is_named(path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"none/store\.db cannot be created: No such file or directory"):
        await SQLiteStore.open(path.parent / "none" / "store.db")


@on_loop
async def test_a_directory_is_no_file(path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=re.escape(str(path.parent))):
        await SQLiteStore.open(path.parent)


@contextmanager
def as_nobody() -> Iterator[Path]:
    """A directory in which we can do nothing but read: file modes do not bind root, so it steps down meanwhile."""
    directory = Path(tempfile.mkdtemp())
    user = os.geteuid()
    try:
        yield directory
    finally:
        os.seteuid(user)
        directory.chmod(0o700)
        shutil.rmtree(directory)


def step_down(directory: Path) -> None:
    directory.chmod(0o555)
    for file in directory.iterdir():
        file.chmod(0o444)
    if os.geteuid() == 0:
        os.seteuid(NOBODY)


@on_loop
async def test_a_read_only_directory_is_named_and_stays_empty() -> None:
    with as_nobody() as directory:
        step_down(directory)
        with pytest.raises(StoreUnavailable, match=r"store\.db cannot be created: Permission denied"):
            await SQLiteStore.open(directory / "store.db")
        assert list(directory.iterdir()) == []


@on_loop
async def test_a_read_only_file_is_refused_and_left_alone() -> None:
    with as_nobody() as directory:
        path = directory / "store.db"
        async with await SQLiteStore.open(path) as store:
            await store.create("/a", b"1")
        before = content(path)
        step_down(directory)
        with pytest.raises(StoreUnavailable, match=r"store\.db is read-only"):
            await SQLiteStore.open(path)
        assert content(path) == before
        assert [file.name for file in directory.iterdir()] == ["store.db"]


@on_loop
async def test_watching_from_before_a_restart_goes_on_after_it(path: Path) -> None:
    async with await SQLiteStore.open(path) as store:
        await fill(store, "/k/", 3)
        async with await store.watch("/k/", after=1) as watch:
            await read(watch, 2)
            progress = watch.progress
    async with await SQLiteStore.open(path) as store, await store.watch("/k/", after=progress) as watch:
        await fill(store, "/k/new", 2)
        assert [event.revision for event in await read(watch, 3)] == [4, 5, 6]
