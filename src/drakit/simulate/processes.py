"""Simulated processes on one SeededLoop: each has its tasks, its clock and its end.

In:  what a process does, as a coroutine.
Out: tasks that belong to it. Killed, none of them runs again; paused, they stand still.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import warnings
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import Context, copy_context
from typing import Any, Protocol, TypeVar

from drakit.simulate.loops import PROCESS, LoopClock, SeededLoop

_MANY = 4096
_STUBBORN = 100
_PASSES = 5


T = TypeVar("T")
Tell = Callable[[Any, Exception | None], None]
"""Told of an answer, or of the error that there is instead."""


class ProcessLink(Protocol):
    def break_off(self) -> None:
        """The process at one end is gone."""


class Process:
    """One life of a component. `connections` are those that end with it."""

    def __init__(self, name: str, life: int, loop: SeededLoop) -> None:
        self.name = name
        self.id = f"{name}#{life}"
        self.loop = loop
        self.clock = LoopClock(loop)
        self.alive = True
        self.main: asyncio.Task[Any] | None = None
        self.connections: dict[ProcessLink, None] = {}
        self._owed: dict[int, tuple[Exception, Tell]] = {}
        self._calls = 0
        self._context = copy_context()
        self._context.run(PROCESS.set, self.id)

    @property
    def context(self) -> Context:
        return self._context.copy()

    def spawn(self, work: Coroutine[Any, Any, Any], *, name: str = "") -> asyncio.Task[Any]:
        return self.loop.create_task(work, name=name or self.id, context=self.context)

    def kill(self) -> None:
        """At once, in the middle of whatever it does. Who waits for an answer of it is told that none comes."""
        self.alive = False
        self.loop.kill(self.id)
        owed, self._owed = self._owed, {}
        for error, tell in owed.values():
            tell(None, error)
        for each in list(self.connections):
            each.break_off()

    def pause(self) -> None:
        self.loop.paused.add(self.id)

    def resume(self) -> None:
        self.loop.paused.discard(self.id)

    def answer(self, work: Callable[[], Awaitable[T]], gone: Exception, tell: Tell) -> None:
        """Do the work here, and tell of its outcome; if the process ends first, that is the error `gone`."""
        if not self.alive:
            tell(None, gone)
            return
        self._calls += 1
        self._owed[self._calls] = gone, tell
        self.spawn(self._answer(self._calls, work))

    async def _answer(self, number: int, work: Callable[[], Awaitable[T]]) -> None:
        answer: T | None = None
        failed: Exception | None = None
        try:
            answer = await work()
        except Exception as error:
            failed = error
        if (owed := self._owed.pop(number, None)) is not None:
            owed[1](answer, failed)


@contextmanager
def undisturbed() -> Iterator[None]:
    """No garbage is collected within, so that nothing depends on when it is; at the end all of it, in silence.

    What killed processes leave behind cannot be closed without complaints, and those concern nobody.
    """
    hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
    enabled = gc.isenabled()
    gc.disable()
    gc.freeze()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
            for _ in range(_PASSES):  # what is closed may leave more behind
                if not gc.collect():
                    break
    finally:
        gc.unfreeze()
        if enabled:
            gc.enable()
        sys.unraisablehook = hook


class NumberedTask(asyncio.Task[Any]):
    """A task whose hash is its number: a set of tasks has the same order in every run."""

    number = 0

    def __hash__(self) -> int:
        return self.number


class NumberedFuture(asyncio.Future[Any]):
    """As above."""

    number = 0

    def __hash__(self) -> int:
        return self.number


class Graveyard:
    """Makes tasks and holds each until the end.

    What the garbage collector closes would run its clean-up, which a killed process does not.
    """

    def __init__(self, loop: SeededLoop) -> None:
        self._tasks: list[NumberedTask] = []
        self._count = 0
        self._loop = loop
        loop.set_task_factory(self._make)
        loop.create_future = self._make_future  # type: ignore[method-assign]

    def _make(self, loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
        self._count += 1
        # Before it is made: asyncio keeps tasks in a set, by their hash.
        NumberedTask.number = self._count
        task = NumberedTask(work, loop=loop, **options)
        task.number = self._count
        self._tasks.append(task)
        if len(self._tasks) > _MANY:
            self._tasks = [each for each in self._tasks if not each.done()]
        return task

    def _make_future(self) -> asyncio.Future[Any]:
        future = NumberedFuture(loop=self._loop)
        self._count += 1
        future.number = self._count
        return future

    def bury(self) -> None:
        """Close what never ended. Nothing that it does now matters to anybody."""
        for task in self._tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            if not task.done():
                _close(task.get_coro())
        self._tasks.clear()


def _close(work: Any) -> None:
    """A coroutine that awaits something in its clean-up has to be closed again there."""
    for _ in range(_STUBBORN):
        try:
            work.close()
        except BaseException:  # noqa: S112 - it is over
            continue
        return
