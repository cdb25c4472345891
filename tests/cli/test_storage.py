"""A restart right after a stop waits for the file instead of failing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from drakit.base.clock import FakeClock
from drakit.cli.processes.storage import LOCK_SECONDS, open_file
from drakit.store import SQLiteStore, StoreLocked


def test_a_file_that_another_process_still_has_is_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "store.db"

    async def run() -> int:
        clock = FakeClock()
        first = await SQLiteStore.open(path)
        await first.create("/a", b"1")
        waiting = asyncio.create_task(open_file(path, clock))
        for _ in range(200):
            await asyncio.sleep(0.01)
            if clock.next_deadline() is not None:
                break
        await first.close()
        while not waiting.done():
            clock.advance(0.1)
            await asyncio.sleep(0.01)
        async with await waiting as store:
            return await store.count("/a")

    assert asyncio.run(run()) == 1
    assert [record.message.partition(": ")[2] for record in caplog.records] == [
        "waiting up to 10 s for its end",
    ]


def test_a_file_that_is_never_let_go_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def run() -> None:
        clock = FakeClock()
        async with await SQLiteStore.open(path):
            waiting = asyncio.create_task(open_file(path, clock))
            while not waiting.done():
                clock.advance(LOCK_SECONDS / 4)
                await asyncio.sleep(0.01)
            await waiting

    with pytest.raises(StoreLocked):
        asyncio.run(run())
