"""Time that only moves when told to."""

from __future__ import annotations

import asyncio
from datetime import UTC, timedelta

import pytest

from drakit.base.clock import FakeClock, RealClock


def test_advancing_wakes_sleepers_in_the_order_of_their_deadlines() -> None:
    async def scenario() -> list[str]:
        clock, woken = FakeClock(), []

        async def sleeper(name: str, seconds: float) -> None:
            await clock.sleep(seconds)
            woken.append(f"{name}@{clock.monotonic():g}")

        async with asyncio.TaskGroup() as group:
            for name, seconds in (("late", 3), ("soon", 1), ("now", 0), ("twin", 1)):
                group.create_task(sleeper(name, seconds))
            await clock.run_for(10)
        return woken

    assert asyncio.run(scenario()) == ["now@0", "soon@1", "twin@1", "late@3"]


def test_a_task_that_sleeps_in_a_loop_is_woken_each_time() -> None:
    async def scenario() -> list[float]:
        clock, ticks = FakeClock(), []

        async def ticker() -> None:
            while True:
                await clock.sleep(1)
                ticks.append(clock.monotonic())

        task = asyncio.create_task(ticker())
        await clock.run_for(3.5)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert clock.next_deadline() is None
        return ticks

    assert asyncio.run(scenario()) == [1, 2, 3]


def test_wall_time_moves_with_the_fake_clock() -> None:
    clock = FakeClock()
    start = clock.now()
    clock.advance(90)
    assert clock.now() - start == timedelta(seconds=90)
    assert clock.now().tzinfo is UTC
    with pytest.raises(ValueError, match="time does not go back"):
        clock.advance(-1)


def test_the_real_clock_is_aware_and_never_goes_back() -> None:
    clock = RealClock()
    assert clock.now().tzinfo is UTC
    before = clock.monotonic()
    asyncio.run(clock.sleep(-1))
    assert clock.monotonic() >= before
