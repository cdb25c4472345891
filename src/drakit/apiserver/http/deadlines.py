"""Deadlines that many share: what takes as long as another is over after it.

In:  something to await, and the seconds that it may take.
Out: its result; TimeoutError when it is not there in time.

`asyncio.timeout` starts and stops a timer of the loop each time, twice for each request: a twelfth of the CPU time of a
get over TLS. Here one timer looks after all. It is never stopped, and looks again at what is then the oldest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

T = TypeVar("T")


class Deadlines:
    """Invariant: `_ends` is in the order of its times, and a timer runs while it is not empty."""

    def __init__(self) -> None:
        self._ends: dict[asyncio.Task[Any], float] = {}
        self._over: set[asyncio.Task[Any]] = set()
        """Tasks that were cancelled because their time was over."""
        self._timer: asyncio.TimerHandle | None = None

    async def within(self, seconds: float, work: Awaitable[T]) -> T:
        """Await the work. `seconds` are the same for all, and one task has one deadline at a time."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        if task is None:
            raise RuntimeError("only a task can be given up")
        cancellations = task.cancelling()
        self._ends[task] = loop.time() + seconds
        if self._timer is None:
            self._timer = loop.call_later(seconds, self._look)
        try:
            return await work
        except asyncio.CancelledError:
            # Somebody else may want the task to end as well: that counts more.
            if task in self._over and task.cancelling() == cancellations + 1:
                raise TimeoutError from None
            raise
        finally:
            self._ends.pop(task, None)
            if task in self._over:
                self._over.remove(task)
                task.uncancel()

    def _look(self) -> None:
        """End what is over, and look again when the next one is."""
        loop = asyncio.get_running_loop()
        self._timer = None
        while self._ends:
            task, end = next(iter(self._ends.items()))
            if end > loop.time():
                self._timer = loop.call_at(end, self._look)
                return
            del self._ends[task]
            self._over.add(task)
            task.cancel()
