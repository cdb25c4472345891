"""The file does not grow without need: what nothing refers to is deleted, and its pages are given back."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

from drakit.base.clock import FakeClock
from drakit.store import Retention, SQLiteStore

VALUE = b"x" * 4000


def size(path: Path) -> int:
    return sum(each.stat().st_size for each in path.parent.glob(f"{path.name}*"))


async def churn(store: SQLiteStore, rounds: int) -> None:
    for number in range(rounds):
        record = await store.create(f"/a/{number}", VALUE)
        for _ in range(3):
            record = await store.update(f"/a/{number}", VALUE, expected=record.revision)
        await store.delete(f"/a/{number}", expected=record.revision)


def test_a_file_that_was_full_of_history_is_small_again_when_history_is_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def run() -> tuple[int, int]:
        clock = FakeClock()
        async with await SQLiteStore.open(path, clock=clock) as store:
            await churn(store, 1000)
            full = size(path)
            clock.advance(301)
            await churn(store, 1)
            await store.compact(await store.revision())
        return full, size(path)

    full, left = asyncio.run(run())
    assert full > 12_000_000
    assert left < 1_000_000


def test_history_is_bounded_by_size(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def run() -> int:
        async with await SQLiteStore.open(path, retention=Retention(bytes=2_000_000)) as store:
            await churn(store, 1500)
        return size(path)

    # What history may hold, what waits to be deleted (1,024 rows), and the log of the last writes.
    assert asyncio.run(run()) < 16_000_000


def test_a_file_from_before_gives_pages_back_too(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def make() -> None:
        async with await SQLiteStore.open(path) as store:
            await churn(store, 10)

    asyncio.run(make())
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA auto_vacuum = 0")
        connection.execute("VACUUM")
        assert connection.execute("PRAGMA auto_vacuum").fetchone() == (0,)
    connection.close()
    asyncio.run(make_again(path))
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA auto_vacuum").fetchone() == (2,)
    connection.close()


async def make_again(path: Path) -> None:
    async with await SQLiteStore.open(path) as store:
        await store.create("/b", VALUE)
