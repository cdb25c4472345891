"""Time as a parameter: nothing else in drakit asks the machine what time it is.

A component takes a Clock. In production it is RealClock; in tests and in the simulator it is FakeClock, which moves
only when it is told to, and wakes sleepers in the order of their deadlines.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """Wall time, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back; only differences mean anything."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after that time; at once (after one turn of the loop) for zero or less."""
        ...


class RealClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    # The function itself: a pod on its way asks sixty times.
    monotonic = staticmethod(time.monotonic)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(seconds, 0.0))


class FakeClock:
    """Invariant: time moves in `advance` alone, and never past a sleeper without waking it."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._elapsed = 0.0
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed + seconds, next(self._order), done))
        await done

    def advance(self, seconds: float) -> None:
        """Move time, waking those whose time has come; they run on the next turn of the loop."""
        if seconds < 0:
            raise ValueError(f"time does not go back: advance({seconds})")
        self._move_to(self._elapsed + seconds)

    async def run_for(self, seconds: float, *, turns: int = 20) -> None:
        """Move time from deadline to deadline, letting woken tasks run (and sleep again) in between."""
        end = self._elapsed + seconds
        await _turn(turns)
        while (deadline := self.next_deadline()) is not None and deadline <= end:
            self._move_to(deadline)
            await _turn(turns)
        self._move_to(end)
        await _turn(turns)

    def next_deadline(self) -> float | None:
        """When the next sleeper wakes, on the monotonic scale."""
        while self._sleepers and self._sleepers[0][2].done():  # cancelled
            heapq.heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None

    def _move_to(self, instant: float) -> None:
        self._elapsed = max(instant, self._elapsed)
        while (deadline := self.next_deadline()) is not None and deadline <= self._elapsed:
            heapq.heappop(self._sleepers)[2].set_result(None)


async def _turn(turns: int) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)
