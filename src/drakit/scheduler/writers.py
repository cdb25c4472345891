"""Background writes: events and conditions of pods, which no binding waits for.

In:  writes, each about one pod, at any rate.
Out: the writes, made by a few tasks; those about one pod in order. Nothing is dropped: the scheduling loop waits when
     too many writes are pending.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from zlib import crc32

from drakit.api.objects.pods import Pod
from drakit.base.clock import Clock
from drakit.client import Client
from drakit.client.events import EventRecorder

log = logging.getLogger("drakit.scheduler")

MOST = 2000
WRITERS = 4
COURTESY = 16
"""Turns of the loop that a writer lets attempts and bindings have before it writes, as long as there is room."""
AT_ONCE = 8
"""Writes that a writer does in one go, if there are so many."""
NOTE_LIMIT = 1024
"""Characters of an event's message; what is longer is cut, as upstream does."""

Write = Callable[[], Awaitable[object]]


class Writers:
    """Invariant: `_count` writes were asked for and are not done."""

    def __init__(self) -> None:
        self._queues: list[deque[Write]] = [deque() for _ in range(WRITERS)]
        self._wanted = [asyncio.Event() for _ in range(WRITERS)]
        self._room = asyncio.Event()
        self._room.set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._count = 0

    def later(self, uid: str, write: Write) -> None:
        """Queue a write. Writes about one pod are made in order."""
        number = crc32(uid.encode()) % WRITERS
        self._queues[number].append(write)
        self._wanted[number].set()
        self._count += 1
        self._idle.clear()
        if self._count >= MOST:
            self._room.clear()

    async def room(self) -> None:
        """Wait until fewer than the limit are pending."""
        await self._room.wait()

    async def done(self) -> None:
        """Wait until nothing is pending."""
        await self._idle.wait()

    @property
    def is_idle(self) -> bool:
        return not self._count

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for queue, wanted in zip(self._queues, self._wanted, strict=True):
                group.create_task(self._work(queue, wanted))

    async def _work(self, queue: deque[Write], wanted: asyncio.Event) -> None:
        while True:
            await wanted.wait()
            wanted.clear()
            while queue:
                await self._let_others_pass()
                for _ in range(min(len(queue), AT_ONCE)):
                    await self._do(queue.popleft())

    async def _let_others_pass(self) -> None:
        for _ in range(COURTESY):
            if self._count > MOST // 2:
                return
            await asyncio.sleep(0)

    async def _do(self, write: Write) -> None:
        try:
            await write()
        except Exception:
            log.exception("a write is lost")
        self._count -= 1
        if self._count <= MOST // 2:
            self._room.set()
        if not self._count:
            self._idle.set()


class Events:
    """Tells people of pods, in the name of the scheduler that each names."""

    def __init__(self, client: Client, clock: Clock, writers: Writers) -> None:
        self._client = client
        self._clock = clock
        self._writers = writers
        self._recorders: dict[str, EventRecorder] = {}

    def record(self, pod: Pod, type_: str, reason: str, message: str) -> None:
        name = pod.spec.scheduler_name
        recorder = self._recorders.get(name)
        if recorder is None:
            recorder = self._recorders[name] = EventRecorder(self._client, self._clock, name)
        self.later(pod, partial(recorder.tell, "Pod", "v1", pod, reason, cut(message), type_=type_))

    def later(self, pod: Pod, write: Write) -> None:
        """Have something else written about a pod, in order with what is told of it."""
        self._writers.later(pod.metadata.uid, write)


def cut(message: str) -> str:
    return message if len(message) <= NOTE_LIMIT else f"{message[: NOTE_LIMIT - 4]} ..."
