"""Keys that wait for a worker: each once, however often it is added.

In:  keys, at once, after a delay, or after a failure.
Out: keys for workers, first come first served. A key that is added while a worker has it comes again when that worker
     is done, so no change is missed and no key is worked on twice at a time.

All time is the injected clock's. Nothing here needs a running loop but `get`.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

from prometheus_client import CollectorRegistry

from drakit.base.clock import Clock
from drakit.base.errors import DrakitError
from drakit.informers.queuemetrics import WorkQueueMetrics
from drakit.informers.ratelimits import RetryLimits

K = TypeVar("K", bound=Hashable)


class QueueClosed(DrakitError):
    """The queue is closed, and what was in it has been handed out."""


class WorkQueue(Generic[K]):
    """Invariant: a key is in `_order` exactly when it is dirty and no worker has it."""

    def __init__(
        self,
        clock: Clock,
        *,
        name: str = "",
        registry: CollectorRegistry | None = None,
        limits: RetryLimits[K] | None = None,
    ) -> None:
        self.name = name
        self._clock = clock
        self._limits: RetryLimits[K] = limits or RetryLimits(clock)
        self._order: deque[K] = deque()
        self._dirty: dict[K, float] = {}  # since when
        self._working: dict[K, float] = {}
        self._delayed: list[tuple[float, int, K]] = []
        self._due: dict[K, float] = {}  # the soonest entry of each delayed key; later ones are passed over
        self._count = itertools.count()
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._idle: list[asyncio.Future[None]] = []
        self._timer: asyncio.Task[None] | None = None
        self._timer_due = 0.0
        self._closed = False
        self._metrics = WorkQueueMetrics(registry, name) if registry is not None else None
        if self._metrics is not None:
            self._metrics.follow(self.__len__, self._running)

    def add(self, key: K) -> None:
        """Add a key. It has no effect if the key waits already."""
        if self._closed or key in self._dirty:
            return
        self._dirty[key] = self._clock.monotonic()
        if self._metrics is not None:
            self._metrics.adds.inc()
        # A key that a worker has stays dirty; `done` queues it again. So no key is worked on twice at a time.
        if key not in self._working:
            self._order.append(key)
            self._wake()

    def add_after(self, key: K, seconds: float) -> None:
        """Add the key when that time has passed; if it is due sooner already, then."""
        if self._closed:
            return
        if seconds <= 0:
            self.add(key)
            return
        due = self._clock.monotonic() + seconds
        if key in self._due and self._due[key] <= due:
            return
        self._due[key] = due
        heapq.heappush(self._delayed, (due, next(self._count), key))
        self._set_timer()

    def retry(self, key: K) -> None:
        """Add the key after a failure: later each time."""
        if self._metrics is not None:
            self._metrics.retries.inc()
        self.add_after(key, self._limits.when(key))

    def forget(self, key: K) -> None:
        """Reset the backoff of a key: its next failure counts as the first."""
        self._limits.forget(key)

    def failures(self, key: K) -> int:
        return self._limits.failures(key)

    def ready(self) -> list[K]:
        """The keys that wait for a worker now, in order."""
        self._move_due()
        return list(self._order)

    def take(self) -> K | None:
        """The next key, if there is one now; `done` must follow."""
        self._move_due()
        if not self._order:
            return None
        key = self._order.popleft()
        now = self._clock.monotonic()
        since = self._dirty.pop(key)
        self._working[key] = now
        if self._metrics is not None:
            self._metrics.waiting.observe(now - since)
        return key

    async def get(self) -> K:
        """The next key, as soon as there is one; `done` must follow. Raise QueueClosed."""
        while True:
            key = self.take()
            if key is not None:
                return key
            if self._closed:
                raise QueueClosed(f"work queue {self.name!r} is closed")
            await self._wait()

    def done(self, key: K) -> None:
        """The worker has finished with the key, well or not; if it was added meanwhile, it waits again."""
        begun = self._working.pop(key)
        if self._metrics is not None:
            self._metrics.working.observe(self._clock.monotonic() - begun)
        if key in self._dirty:
            self._order.append(key)
            self._wake()
        self._check_idle()

    def __len__(self) -> int:
        """How many keys wait for a worker."""
        return len(self._order)

    @property
    def working(self) -> int:
        """How many keys workers have now."""
        return len(self._working)

    @property
    def delayed(self) -> int:
        """How many keys wait for their time."""
        return len(self._due)

    def close(self, *, drop: bool = False) -> None:
        """Take no more keys, and drop those whose time has not come; also those that wait for a worker, if told so."""
        self._closed = True
        if drop:
            for key in self._order:
                del self._dirty[key]
            self._order.clear()
        self._delayed.clear()
        self._due.clear()
        if self._timer is not None:
            self._timer.cancel()
        while self._waiters:
            self._wake()
        self._check_idle()

    def _check_idle(self) -> None:
        if self._order or self._working:
            return
        for idle in self._idle:
            if not idle.done():
                idle.set_result(None)
        self._idle.clear()

    def _move_due(self) -> None:
        now = self._clock.monotonic()
        while self._delayed and self._delayed[0][0] <= now:
            due, _, key = heapq.heappop(self._delayed)
            # An entry that was replaced by a sooner one is still in the heap: it is skipped when it comes up.
            if self._due.get(key) == due:
                del self._due[key]
                self.add(key)

    async def _wait(self) -> None:
        self._set_timer()
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._wake()  # it was this one's turn: pass it on
            raise

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _set_timer(self) -> None:
        """One task sleeps until the first delayed key is due, as long as there is a loop to run it."""
        if not self._delayed or self._closed:
            return
        due = self._delayed[0][0]
        if self._timer is not None and not self._timer.done():
            # The sleeping task looks at the heap again when it wakes: only a sooner deadline needs another one.
            if self._timer_due <= due:
                return
            self._timer.cancel()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._timer_due = due
        self._timer = loop.create_task(self._sleep())

    async def _sleep(self) -> None:
        while self._delayed:
            self._timer_due = self._delayed[0][0]
            await self._clock.sleep(self._timer_due - self._clock.monotonic())
            self._move_due()

    def _running(self) -> list[float]:
        now = self._clock.monotonic()
        return [now - begun for begun in self._working.values()]
