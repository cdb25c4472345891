"""One at a time, within a process and between processes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from drakit.base.clock import RealClock
from drakit.base.errors import Unavailable
from drakit.driverkit.state.files import RealFileSystem
from drakit.driverkit.state.locks import ClaimLocks, held_in_file, try_hold
from tests.driverkit.node import on_loop, short_directory


def locks(path: Path, *, serialize: bool) -> ClaimLocks:
    """As another process has them: of its own, over the same file."""
    return ClaimLocks(serialize=serialize, path=path, files=RealFileSystem(), clock=RealClock())


async def is_taken(wanted: ClaimLocks, *uids: str) -> bool:
    """Whether somebody else has them; it is asked for a moment that lasts several tries."""
    taking = asyncio.create_task(take(wanted, *uids))
    await asyncio.sleep(0.06)
    taken = not taking.done()
    taking.cancel()
    await asyncio.gather(taking, return_exceptions=True)
    return taken


async def take(wanted: ClaimLocks, *uids: str) -> None:
    async with asyncio.timeout(10), wanted.held(uids):
        return


@on_loop
async def test_two_instances_exclude_each_other_by_the_file() -> None:
    with short_directory() as root:
        one, two = (locks(root / "lock", serialize=True) for _ in range(2))
        async with one.held(["a"]):
            assert await is_taken(two, "b")
        await take(two, "b")


@on_loop
async def test_without_serialization_only_the_same_claim_waits() -> None:
    with short_directory() as root:
        one, two = (locks(root / "lock", serialize=False) for _ in range(2))
        async with one.held(["a", "b"]):
            assert await is_taken(two, "b", "c")
            await take(two, "c")


@on_loop
async def test_claims_that_are_wanted_in_another_order_never_wait_in_a_ring() -> None:
    with short_directory() as root:
        shared = locks(root / "lock", serialize=False)
        await asyncio.gather(*(take(shared, *uids) for uids in (("a", "b"), ("b", "a"), ("c", "a", "b"))))


def test_a_whole_file_is_held_by_one(tmp_path: Path) -> None:
    files, path = RealFileSystem(), tmp_path / "lock"
    held = try_hold(files, path)
    assert held is not None
    assert try_hold(files, path) is None
    held.close()
    again = try_hold(files, path)
    assert again is not None
    again.close()


@on_loop
async def test_a_lock_that_cannot_be_made_is_told() -> None:
    with pytest.raises(Unavailable, match="the lock /proc/nowhere/lock cannot be used"):
        async with held_in_file(RealFileSystem(), Path("/proc/nowhere/lock"), [(0, 0)], RealClock()):
            pass
