"""Wait for work no longer than a time of the injected clock."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from drakit.base.clock import Clock
from drakit.base.errors import DeadlineExceeded

T = TypeVar("T")


async def within(clock: Clock, seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """Its result; DeadlineExceeded when the time is over first, the work being cancelled and ended by then."""
    task = asyncio.create_task(work)
    timer = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait({task, timer}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise DeadlineExceeded(f"not done within {seconds:g} s")
    finally:
        await _end(task, timer)


async def _end(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
