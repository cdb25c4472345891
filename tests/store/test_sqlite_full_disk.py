"""SQLite: a disk that takes no more. The write that fails is nowhere; reads go on; later writes may succeed."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from drakit.store import KeyNotFound, Record, SQLiteStore, StoreUnavailable
from tests.store.engines import connection_of, fill, on_loop

BIG = b"x" * 100_000


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with 512 KiB."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(tmp_path)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("only root may mount")
    try:
        yield tmp_path
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


async def write_until_full(store: SQLiteStore) -> list[Record]:
    made = []
    for number in range(50):
        try:
            made.append(await store.create(f"/big/{number:02d}", BIG))
        except StoreUnavailable:
            return made
    raise AssertionError("the disk never got full")


async def check_nothing_is_damaged(store: SQLiteStore, made: list[Record]) -> None:
    assert (await store.list("/big/")).records == made
    assert await store.revision() == 1 + len(made)
    with pytest.raises(KeyNotFound):
        await store.get(f"/big/{len(made):02d}")


@on_loop
async def test_a_full_disk_fails_the_write_alone(tiny_disk: Path) -> None:
    ballast = tiny_disk / "ballast"
    ballast.write_bytes(bytes(100_000))
    async with await SQLiteStore.open(tiny_disk / "store.db") as store, await store.watch("/", after=1) as watch:
        made = await write_until_full(store)
        await check_nothing_is_damaged(store, made)
        assert watch.progress == 1
        assert [event.record for event in await watch.take()] == made
        ballast.unlink()
        small = await store.create("/small", b"1")
        assert small.revision == len(made) + 2
        assert (await anext(watch)).record == small
    async with await SQLiteStore.open(tiny_disk / "store.db") as store:
        assert (await store.list("/")).records == [*made, small]


@on_loop
async def test_a_store_on_a_full_disk_can_be_opened_and_read(tiny_disk: Path) -> None:
    path = tiny_disk / "store.db"
    async with await SQLiteStore.open(path) as store:
        await fill(store, "/k/", 3)
    ballast = tiny_disk / "ballast"
    with pytest.raises(OSError, match="No space left"):
        ballast.write_bytes(bytes(600_000))
    async with await SQLiteStore.open(path) as store:
        assert await store.count("/k/") == 3
        with pytest.raises(StoreUnavailable, match=r"no space left|disk I/O error"):
            await store.create("/big", BIG)
        assert await store.revision() == 4
        ballast.unlink()
        assert (await store.create("/big", BIG)).revision == 5


@on_loop
async def test_a_store_cannot_be_made_on_a_full_disk_and_leaves_nothing_behind(tiny_disk: Path) -> None:
    with pytest.raises(OSError, match="No space left"):
        (tiny_disk / "ballast").write_bytes(bytes(600_000))
    with pytest.raises(StoreUnavailable, match=r"store\.db"):
        await SQLiteStore.open(tiny_disk / "store.db")
    assert sorted(file.name for file in tiny_disk.iterdir()) == ["ballast"]  # noqa: ASYNC240 -- nothing else runs


@on_loop
async def test_all_writers_of_a_group_that_does_not_fit_are_told(tmp_path: Path) -> None:
    async with await SQLiteStore.open(tmp_path / "store.db") as store, await store.watch("/", after=1) as watch:
        await store.create("/first", b"1")
        pages = connection_of(store).execute("PRAGMA page_count").fetchone()[0]
        connection_of(store).execute(f"PRAGMA max_page_count = {pages + 5}")
        outcomes = await asyncio.gather(
            *(store.create(f"/{n}", b"x" * 2000) for n in range(20)), return_exceptions=True
        )
        assert all(isinstance(outcome, StoreUnavailable) for outcome in outcomes)
        assert "no space left" in str(outcomes[0])
        assert (await store.count("/"), await store.revision()) == (1, 2)
        assert len(await watch.take()) == 1
        connection_of(store).execute("PRAGMA max_page_count = 100000")
        assert (await store.create("/3", b"later")).revision == 3
    async with await SQLiteStore.open(tmp_path / "store.db") as store:
        assert [record.key for record in (await store.list("/")).records] == ["/3", "/first"]


LIMITED = """
import asyncio, resource, sys
from drakit.store import SQLiteStore, StoreUnavailable

async def main(path):
    async with await SQLiteStore.open(path) as store:
        await store.create("/first", b"1")
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
        made = 0
        try:
            while made < 1000:
                await store.create(f"/{made}", b"x" * 1000)
                made += 1
        except StoreUnavailable as error:
            print(error)
        assert await store.count("/") == made + 1 == await store.revision() - 1, made
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert (await store.create("/last", b"1")).revision == made + 3
        print(made)

asyncio.run(main(sys.argv[1]))
"""


@on_loop
async def test_a_file_that_may_not_grow_fails_the_write_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    command = [sys.executable, "-c", LIMITED, str(path)]
    answer = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    message, made = answer.stdout.splitlines()
    assert "store.db" in message
    async with await SQLiteStore.open(path) as store:
        assert await store.revision() == int(made) + 3
        assert await store.count("/") == int(made) + 2
