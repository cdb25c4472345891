"""Run cheap work at once, and expensive work in a thread.

In:  work that can be tried cheaply; it raises TooCostly when that does not suffice.
Out: its result.

Administrators write expressions, users send the objects that they run on. A large object that meets a policy with loops
would hold up every other request. So one thread does such work, one piece after the other, beside the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol, TypeVar

from drakit.apiserver.admission.criteria.expressions import TooCostly

T = TypeVar("T")
LARGE = 128 * 1024
"""Bytes of an object that is worked on beside the loop: smaller ones take a few milliseconds."""
T_co = TypeVar("T_co", covariant=True)


class Work(Protocol[T_co]):
    def __call__(self, *, quick: bool) -> T_co:
        """Raise TooCostly if `quick` is asked for and the work takes longer."""
        ...


class Worker:
    """One thread, started by the first expensive work. `close` ends it after the piece that it is at."""

    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)

    async def run(self, work: Work[T_co]) -> T_co:
        try:
            return work(quick=True)
        except TooCostly:
            return await self.call(partial(work, quick=False))

    async def call(self, function: Callable[[], T]) -> T:
        """Run a function in the thread, whatever it costs."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, function)

    def close(self) -> None:
        """Idempotent. Work that waits is cancelled."""
        self._executor.shutdown(wait=False, cancel_futures=True)
