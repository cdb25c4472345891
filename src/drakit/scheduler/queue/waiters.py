"""Tasks that wait on the queue: poppers wait for a pod, the alarm for a time."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from drakit.base.clock import Clock


class Poppers:
    """First come, first served; a wake-up that comes to a cancelled one goes to the next."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def wait(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            # Woken and cancelled in the same turn of the loop: the wake-up must not be lost.
            if waiter.done() and not waiter.cancelled():
                self.wake()
            raise

    def wake(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def wake_all(self) -> None:
        while self._waiting:
            self.wake()


class Alarm:
    """A sleep that a nearer deadline cuts short."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due = float("inf")
        self._rung = asyncio.Event()

    def no_later_than(self, due: float) -> None:
        if due < self._due:
            self._due = due
            self._rung.set()

    async def sleep_until(self, due: float) -> None:
        """Until then, or until a nearer deadline is set."""
        self._due = due
        self._rung.clear()
        waits: set[asyncio.Task[Any]] = {asyncio.create_task(self._rung.wait())}
        if due < float("inf"):
            waits.add(asyncio.create_task(self._clock.sleep(due - self._clock.monotonic())))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
