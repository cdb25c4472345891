"""The reconcile loop: keys in, state made as it should be, keys again when it could not be.

In:  keys of a work queue; a `reconcile` that reads the state behind a key and acts on it.
Out: retries with backoff for what may succeed later, a log line for what never will.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress
from typing import Generic, TypeVar

import msgspec
from prometheus_client import CollectorRegistry

from drakit.base.clock import Clock
from drakit.base.errors import Conflict, Forbidden, Retryable, Terminal
from drakit.client import V
from drakit.informers.workqueue import QueueClosed, WorkQueue

log = logging.getLogger("drakit.informers")

K = TypeVar("K", bound=Hashable)

_KEYS_TOGETHER = 256
"""Keys that a worker may take without a turn for others: thousands may wait at once, and most need nothing done."""


class Result(msgspec.Struct, frozen=True):
    """What to do with the key: nothing, or have it again after some seconds, or again with backoff."""

    again_after: float | None = None
    again: bool = False

    @staticmethod
    def done() -> Result:
        return _DONE

    @staticmethod
    def after(seconds: float) -> Result:
        """Requeue after this time, even if nothing changes."""
        return Result(again_after=seconds)

    @staticmethod
    def retry() -> Result:
        """Requeue with backoff, which grows until `done`."""
        return Result(again=True)


_DONE = Result()
Reconcile = Callable[[K], Awaitable[Result | None]]


class Controller(Generic[K]):
    """Workers over one queue. `reconcile` is safe to repeat, and is never called for one key twice at a time."""

    def __init__(
        self,
        name: str,
        reconcile: Reconcile[K],
        *,
        clock: Clock,
        workers: int = 1,
        registry: CollectorRegistry | None = None,
        queue: WorkQueue[K] | None = None,
    ) -> None:
        self.name = name
        self.queue: WorkQueue[K] = queue or WorkQueue(clock, name=name, registry=registry)
        self._reconcile = reconcile
        self._workers = workers
        self._clock = clock
        self._tasks: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        """Work until `stop`; cancelled, end at once, in the middle of whatever is under way."""
        self._tasks = [
            asyncio.create_task(self._work(), name=f"{self.name} worker {number}") for number in range(self._workers)
        ]
        try:
            await asyncio.wait(self._tasks)
        finally:
            self.queue.close(drop=True)  # its alarm for delayed keys would outlive the workers
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def stop(self, *, grace: float = 10.0) -> None:
        """Take no more keys; what is under way may finish, for `grace` seconds of the clock. Then `run` ends."""
        self.queue.close(drop=True)
        if not self._tasks:
            return
        finished = asyncio.gather(*self._tasks, return_exceptions=True)
        sleeping = asyncio.ensure_future(self._clock.sleep(grace))
        try:
            await asyncio.wait((finished, sleeping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            finished.cancel()
            with suppress(asyncio.CancelledError):
                await finished

    async def _work(self) -> None:
        taken = 0
        with suppress(QueueClosed):
            while True:
                taken = taken + 1 if len(self.queue) else 0
                if taken == _KEYS_TOGETHER:
                    taken = 0
                    await asyncio.sleep(0)
                key = await self.queue.get()
                try:
                    await self.process(key)
                finally:
                    self.queue.done(key)

    async def process(self, key: K) -> None:
        """One reconcile, and what follows from how it went."""
        log.log(V[5], "%s: looking at %s", self.name, key)
        try:
            result = await self._reconcile(key) or _DONE
        except Retryable as error:
            level = V[4] if isinstance(error, Conflict) else V[2]
            log.log(level, "%s: %s: trying again: %s", self.name, key, error)
            self.queue.retry(key)
        except Forbidden as error:
            # Rights, quotas and policies change, and nothing about the key tells of it.
            log.warning("%s: %s: trying again: %s", self.name, key, error)
            self.queue.retry(key)
        except Terminal as error:
            log.error("%s: %s: giving up: %s", self.name, key, error)
            self.queue.forget(key)
        except Exception:
            log.exception("%s: %s: trying again", self.name, key)
            self.queue.retry(key)
        else:
            self._follow_up(key, result)

    def _follow_up(self, key: K, result: Result) -> None:
        if result.again:
            self.queue.retry(key)
            return
        self.queue.forget(key)
        if result.again_after is not None:
            self.queue.add_after(key, result.again_after)
