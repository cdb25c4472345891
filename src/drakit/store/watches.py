"""Hand each event to the watches whose prefix it matches.

In:  events from the store, in revision order, in one thread.
Out: the same event objects, in the buffer of each watch that wants them.

An event costs one look-up per distinct length of the watched prefixes: watches of other prefixes are never touched.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from itertools import islice

from drakit.base.errors import DrakitError
from drakit.store.contract import StoreWatch
from drakit.store.errors import WatcherTooSlow
from drakit.store.records import StoreEvent

_WOKEN_TOGETHER = 64
"""Readers of one event that go on in the same turn of the loop. A watch over HTTP takes about 50 µs of it: a thousand
of them would keep everybody else waiting for 50 ms."""


class BufferedWatch(StoreWatch):
    """A watch fed by a Dispatcher.

    Invariant: as long as the watch is open, every matching event up to `progress` has been read, and every later one
    that was dispatched is in `_buffer`.
    """

    __slots__ = ("_buffer", "_dispatcher", "_ended", "_final", "_full", "_limit", "_reason", "_waiter", "prefix")

    def __init__(self, dispatcher: Dispatcher, prefix: str, past: Iterable[StoreEvent], limit: int) -> None:
        self.prefix = prefix
        self._dispatcher = dispatcher
        self._buffer = deque(past)
        self._limit = limit
        self._full = len(self._buffer) + limit  # the past has room of its own, given back as it is read
        self._waiter: asyncio.Future[None] | None = None
        self._ended = False
        self._reason: DrakitError | None = None
        self._final = 0

    @property
    def progress(self) -> int:
        if self._buffer:
            return self._buffer[0].revision - 1
        return self._final if self._ended else self._dispatcher.revision

    async def __anext__(self) -> StoreEvent:
        if not self._buffer:
            await self._ready()
            if not self._buffer:
                raise StopAsyncIteration
        # No await between here and the return: a cancelled read would lose the event.
        event = self._buffer.popleft()
        self._give_back()
        return event

    async def take(self) -> tuple[StoreEvent, ...]:
        await self._ready()
        events = tuple(self._buffer)
        self._buffer.clear()
        self._give_back()
        return events

    async def close(self) -> None:
        self._dispatcher.remove(self)
        self._drop(None)

    def push(self, event: StoreEvent) -> bool:
        """Buffer an event; whether the reader should have a turn before many more come."""
        # A writer never waits for a reader. One that is too far behind loses its watch, and lists again.
        room = self._full - len(self._buffer)
        if room <= 0:
            self._dispatcher.remove(self)
            self._drop(WatcherTooSlow(self.prefix, self.progress, self._limit))
            return False
        self._buffer.append(event)
        # Half full: a batch of hundreds of events is published in pieces, so that readers can keep up.
        return 2 * (room - 1) < self._limit

    def finish(self, reason: DrakitError) -> None:
        """No more events come: the reader meets the reason after what is buffered."""
        if not self._ended:
            self._final = self._dispatcher.revision
            self._ended, self._reason = True, reason
            self.wake()

    def _drop(self, reason: DrakitError | None) -> None:
        """The reader meets the reason (none: it has closed the watch itself) now; what it has not read is gone."""
        if not self._ended:
            self._final = self.progress
            self._ended, self._reason = True, reason
            self._buffer.clear()
            self.wake()

    async def _ready(self) -> None:
        """Wait until there is an event, or the watch was closed."""
        while not self._buffer:
            if self._reason is not None:
                raise self._reason
            if self._ended:
                return
            if self._waiter is not None:
                raise RuntimeError(f"watch of {self.prefix!r} has a reader already")
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None

    def _give_back(self) -> None:
        if self._full > self._limit:
            self._full = min(self._full, len(self._buffer) + self._limit)

    @property
    def is_awaited(self) -> bool:
        """Whether a reader waits for an event."""
        return self._waiter is not None and not self._waiter.done()

    def wake(self) -> None:
        """Let a reader that waits go on. Idempotent."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Dispatcher:
    """The open watches, by prefix. Invariant: `_lengths` counts the keys of `_watches` by their length.

    While somebody is in `_asleep`, a later turn of the loop is asked for.
    """

    def __init__(self, revision: int) -> None:
        self.revision = revision
        self._watches: dict[str, dict[BufferedWatch, None]] = {}  # ordered: first come, first served
        self._lengths: dict[int, int] = {}
        self._count = 0
        self._asleep: dict[BufferedWatch, None] = {}
        """Watches that have an event, and whose readers go on in a later turn."""

    def __len__(self) -> int:
        return self._count

    def add(self, prefix: str, past: Iterable[StoreEvent], limit: int) -> BufferedWatch:
        """Open a watch that begins with these past events, all that matter up to now."""
        watch = BufferedWatch(self, prefix, past, limit)
        if prefix not in self._watches:
            self._watches[prefix] = {}
            self._lengths[len(prefix)] = self._lengths.get(len(prefix), 0) + 1
        self._watches[prefix][watch] = None
        self._count += 1
        return watch

    def remove(self, watch: BufferedWatch) -> None:
        """Idempotent."""
        group = self._watches.get(watch.prefix, {})
        if watch not in group:
            return
        del group[watch]
        self._count -= 1
        if not group:
            del self._watches[watch.prefix]
            self._shorten(len(watch.prefix))

    def _shorten(self, length: int) -> None:
        self._lengths[length] -= 1
        if not self._lengths[length]:
            del self._lengths[length]

    def dispatch(self, event: StoreEvent) -> bool:
        """Give the event to whom it concerns; whether some reader should have a turn before many more come."""
        crowded = False
        key, watches = event.key, self._watches
        for length in tuple(self._lengths):  # a watch that is too slow takes itself out
            group = watches.get(key[:length])
            if group and length <= len(key):
                for watch in tuple(group):
                    crowded |= watch.push(event)
                if len(group) > _WOKEN_TOGETHER or self._asleep:
                    self._wake_in_turns(group)
                else:
                    for watch in group:
                        watch.wake()
        self.revision = event.revision
        return crowded

    def _wake_in_turns(self, group: Iterable[BufferedWatch]) -> None:
        """Let the first readers go on now, and the others some at a time."""
        awaited = (watch for watch in group if watch.is_awaited)
        for watch in islice(awaited, 0 if self._asleep else _WOKEN_TOGETHER):
            watch.wake()
        for watch in awaited:
            if not self._asleep:
                asyncio.get_running_loop().call_soon(self._wake_more)
            self._asleep[watch] = None

    def _wake_more(self) -> None:
        some = tuple(islice(self._asleep, _WOKEN_TOGETHER))
        for watch in some:
            del self._asleep[watch]
            watch.wake()
        if self._asleep:
            asyncio.get_running_loop().call_soon(self._wake_more)

    def close(self, reason: DrakitError) -> None:
        """End every watch."""
        for group in self._watches.values():
            for watch in group:
                watch.finish(reason)
        self._watches.clear()
        self._lengths.clear()
        self._count = 0
