"""Deadlines that many requests share."""

from __future__ import annotations

import asyncio

import pytest

from drakit.apiserver.http.deadlines import Deadlines
from tests.builders.loop import on_loop


@on_loop
async def test_work_that_is_done_in_time_gives_its_result_and_leaves_nothing_behind() -> None:
    deadlines = Deadlines()

    async def work() -> int:
        await asyncio.sleep(0)
        return 7

    assert await deadlines.within(60, work()) == 7
    assert not deadlines._ends


@on_loop
async def test_work_that_takes_too_long_is_given_up_and_its_task_goes_on() -> None:
    deadlines = Deadlines()
    with pytest.raises(TimeoutError):
        await deadlines.within(0.01, asyncio.Event().wait())
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()
    await asyncio.sleep(0)


@on_loop
async def test_each_of_many_has_its_own_deadline() -> None:
    deadlines, begun = Deadlines(), asyncio.get_running_loop().time()

    async def stuck(after: float) -> float:
        await asyncio.sleep(after)
        try:
            await deadlines.within(0.05, asyncio.Event().wait())
        except TimeoutError:
            return asyncio.get_running_loop().time() - begun
        return 0.0

    first, second = await asyncio.gather(stuck(0), stuck(0.03))
    assert 0.05 <= first < second
    assert second >= 0.08


@on_loop
async def test_who_cancels_the_task_is_not_told_of_a_deadline() -> None:
    deadlines = Deadlines()
    task = asyncio.ensure_future(deadlines.within(60, asyncio.Event().wait()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not deadlines._ends


@on_loop
async def test_an_error_of_the_work_is_its_own() -> None:
    deadlines = Deadlines()

    async def fail() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await deadlines.within(60, fail())
    assert not deadlines._ends
