"""Event loops whose time is virtual: an hour passes in as long as it takes to do what happens in it.

`SteppedLoop`   time moves when it is told to; sockets work; knows when there is nothing left to do
`SeededLoop`    time jumps to the next timer by itself; which process runs next is drawn from a seed; no sockets

Both run executors inline: no thread takes part, so that "nothing is ready" means that nothing is under way.
"""

from __future__ import annotations

import asyncio
import heapq
import selectors
import socket
from collections import deque
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from datetime import UTC, datetime, timedelta
from random import Random
from time import monotonic
from typing import Any, TypeVar

T = TypeVar("T")
START = datetime(2026, 1, 1, tzinfo=UTC)
PROCESS: ContextVar[str] = ContextVar("drakit_simulated_process", default="")
"""The simulated process that code runs in; tasks inherit it from whoever starts them."""

_TICK = 1e-6


def _at_least(delay: float) -> float:
    """A delay that moves time: one that is lost in rounding would be waited for for ever."""
    return max(delay, _TICK) if delay > 0 else delay


class LoopClock:
    """The clock of a virtual loop. `skew` is how far the wall clock of this one is off, in seconds.

    `rate` is how fast it goes: its owner waits and measures by it.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.skew = 0.0
        self.rate = 1.0
        self._since = 0.0
        self._shown = 0.0

    def go_at(self, rate: float) -> None:
        """From now on; what it shows does not jump."""
        self._shown, self._since = self.monotonic(), self._loop.time()
        self.rate = rate

    def set_right(self) -> None:
        """The wall clock is right again; the other goes on from where it is."""
        if self.rate != 1.0:
            self.go_at(1.0)
        self.skew = self._loop.time() - self.monotonic()

    def now(self) -> datetime:
        return START + timedelta(seconds=self.monotonic() + self.skew)

    def monotonic(self) -> float:
        if self._since == 0.0 and self.rate == 1.0:  # never set: nearly every clock
            return self._loop.time()
        return self._shown + (self._loop.time() - self._since) * self.rate

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(seconds, 0.0) / self.rate)


class _InlineExecution:
    """Executors of these loops are the loop itself."""

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # noqa: ARG002
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done


class _PatientSelector(selectors.DefaultSelector):
    """Waits for sockets only: timers of a loop whose time stands still never come due by waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.on_idle: Callable[[], bool] = lambda: False
        self.flows = False

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            return super().select(0)
        ready = super().select(0)
        if ready or self.on_idle():
            return ready
        return super().select(timeout if self.flows else None)


class SteppedLoop(_InlineExecution, asyncio.SelectorEventLoop):  # type: ignore[misc]
    """Time stands still between calls of `advance`; once it `flows`, it goes on by itself too.

    It flows as soon as somebody listens on a socket of this loop.
    """

    def __init__(self) -> None:
        self._elapsed = 0.0
        self._flowing_since: float | None = None
        self._idle: list[asyncio.Future[None]] = []
        patient = _PatientSelector()
        patient.on_idle = self._tell_idle
        self._patient = patient
        super().__init__(patient)

    def time(self) -> float:
        since = self._flowing_since
        return self._elapsed if since is None else self._elapsed + monotonic() - since

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return super().call_later(_at_least(delay), callback, *args, context=context)

    def flow(self) -> None:
        """From now on time also goes by itself, for whoever is outside of this process."""
        if self._flowing_since is None:
            self._flowing_since = monotonic()
            self._patient.flows = True

    @property
    def flows(self) -> bool:
        return self._patient.flows

    # Whoever listens is for those outside, and looks every now and then whether it should end: with time that stands
    # still it never would.

    async def sock_accept(self, sock: socket.socket) -> tuple[socket.socket, Any]:
        self.flow()
        return await super().sock_accept(sock)

    def _start_serving(self, *args: Any, **options: Any) -> None:
        self.flow()
        super()._start_serving(*args, **options)  # type: ignore[misc]

    async def settle(self) -> None:
        """Until nothing is left to do without time going on."""
        idle = self.create_future()
        self._idle.append(idle)
        await idle

    async def advance(self, seconds: float) -> None:
        """Let that much time go by; what happens in it happens in order, at its time."""
        end = self.time() + seconds
        await self.settle()
        while (due := self.next_timer()) is not None and due <= end:
            self._move(due)
            await self.settle()
        self._move(end)
        await self.settle()

    def next_timer(self) -> float | None:
        """When the next timer is due."""
        scheduled: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        while scheduled and scheduled[0].cancelled():
            gone = heapq.heappop(scheduled)
            gone._scheduled = False  # type: ignore[attr-defined]
            self._timer_cancelled_count -= 1  # type: ignore[attr-defined]
        return scheduled[0].when() if scheduled else None

    def _move(self, instant: float) -> None:
        self._elapsed += max(instant - self.time(), 0.0)

    def _tell_idle(self) -> bool:
        waiting, self._idle = self._idle, []
        for each in waiting:
            if not each.done():
                each.set_result(None)
        return bool(waiting)


class Deadlock(RuntimeError):
    """Nothing is ready and no timer will ever make anything ready; or things go on without end."""


class _Callback(asyncio.Handle):
    """A Handle that does not ask each time whether the loop is being debugged."""

    def __init__(
        self, callback: Callable[..., Any], args: Any, loop: asyncio.AbstractEventLoop, context: Context | None
    ) -> None:
        self._context = copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = None
        self._source_traceback = None


class SeededLoop(_InlineExecution, asyncio.BaseEventLoop):  # type: ignore[misc]
    """Processes take turns as the seed says; within a process callbacks keep the order that asyncio promises.

    A process is named by the context variable `PROCESS`. One that is killed never runs again: not even its clean-up, no
    callback, as with SIGKILL. One that is paused runs again when it is resumed, its timers late.
    """

    def __init__(self, random: Random) -> None:
        super().__init__()
        self._random = random
        self._elapsed = 0.0
        self._order: dict[str, deque[asyncio.Handle]] = {}
        self._waiting: list[str] = []
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._count = 0
        self._killed: set[str] = set()
        self.paused: set[str] = set()
        self.steps = 0
        self.most_steps = 400_000

    def time(self) -> float:
        return self._elapsed

    def kill(self, process: str) -> None:
        """What the process has ready is dropped, and all that comes later."""
        self._killed.add(process)
        if self._order.pop(process, None):
            self._waiting.remove(process)

    # What asyncio calls

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: Context | None = None) -> asyncio.Handle:  # type: ignore[override]
        handle = _Callback(callback, args, self, context)
        self._append(handle)
        return handle

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._count += 1
        heapq.heappush(self._timers, (when, self._count, handle))
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._elapsed + _at_least(delay), callback, *args, context=context)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """A cancelled timer is dropped when its time comes."""

    def _process_events(self, event_list: Any) -> None:
        """There are no sockets."""

    def _write_to_self(self) -> None:
        """Nobody waits in another thread."""

    def _append(self, handle: asyncio.Handle) -> None:
        process = handle._context.get(PROCESS, "")  # type: ignore[attr-defined]
        lane = self._order.get(process)
        if lane is None:
            if process in self._killed:
                return
            lane = self._order[process] = deque()
        if not lane:
            self._waiting.append(process)
        lane.append(handle)

    def _run_once(self) -> None:
        while (handle := self._next()) is not None:
            if not handle._cancelled:
                handle._run()
                self.steps += 1
                if self.steps > self.most_steps:
                    raise Deadlock(f"{self.steps} steps, and no end at {self._elapsed:g} s")
                if self._stopping:  # type: ignore[attr-defined]
                    return
        self._wait()

    def _next(self) -> asyncio.Handle | None:
        """The first callback of a process that is drawn among those that have one and may run."""
        waiting = self._waiting
        able = [each for each in waiting if each not in self.paused] if self.paused else waiting
        if not able:
            return None
        process = able[int(self._random.random() * len(able))] if len(able) > 1 else able[0]
        lane = self._order[process]
        handle = lane.popleft()
        if not lane:
            waiting.remove(process)
        return handle

    def _wait(self) -> None:
        """Move time to the next timers; those of one instant become ready together."""
        timers = self._timers
        while timers and timers[0][2].cancelled():
            heapq.heappop(timers)
        if not timers:
            raise Deadlock("nothing is ready and there is no timer")
        self._elapsed = max(self._elapsed, timers[0][0])
        while timers and timers[0][0] <= self._elapsed:
            handle = heapq.heappop(timers)[2]
            if not handle.cancelled():
                self._append(handle)
