"""Run cheap work at once, and expensive work in a thread.

In:  work that can be tried cheaply; it raises TooCostly when that does not suffice.
Out: its result.

Administrators write expressions, users send the objects that they run on. A large object that meets a policy with loops
would hold up every other request. So one thread does such work, one piece after the other, beside the event loop. The
pieces of one user wait behind their own: who sends many large objects does not keep others from sending one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial
from typing import Protocol, TypeVar

from drakit.apiserver.admission.criteria.expressions import TooCostly

T = TypeVar("T")
LARGE = 128 * 1024
"""Bytes of an object that is worked on beside the loop: smaller ones take a few milliseconds."""
T_co = TypeVar("T_co", covariant=True)
FLOW: ContextVar[str] = ContextVar("flow", default="")
"""Whose work it is: the user of the request."""


class Work(Protocol[T_co]):
    def __call__(self, *, quick: bool) -> T_co:
        """Raise TooCostly if `quick` is asked for and the work takes longer."""
        ...


class Worker:
    """One thread, started by the first expensive work. `close` ends it after the piece that it is at.

    Invariant: somebody waits only while `_busy`. Every queue in `_waiting` has somebody in it.
    """

    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._busy = False
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """By flow. The flow whose turn it is comes first."""

    async def run(self, work: Work[T_co]) -> T_co:
        try:
            return work(quick=True)
        except TooCostly:
            return await self.call(partial(work, quick=False))

    async def call(self, function: Callable[[], T]) -> T:
        """Run a function in the thread, whatever it costs."""
        if self._busy:
            await self._turn()
        self._busy = True
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, function)
        finally:
            self._pass_on()

    async def _turn(self) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(FLOW.get(), deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._pass_on()  # the turn came, and nobody takes it
            raise

    def _pass_on(self) -> None:
        """Let the first of the next flow have the thread. Who has given up meanwhile is passed over."""
        while self._waiting:
            flow = next(iter(self._waiting))
            queue = self._waiting.pop(flow)
            turn = queue.popleft()
            if queue:
                self._waiting[flow] = queue
            if not turn.done():
                turn.set_result(None)
                return
        self._busy = False

    def close(self) -> None:
        """Idempotent. Work that waits is cancelled."""
        for queue in self._waiting.values():
            for turn in queue:
                turn.cancel()
        self._waiting.clear()
        self._executor.shutdown(wait=False, cancel_futures=True)
