"""The informers of a process: one per kind, whoever asks for it.

In:  a client.
Out: shared informers, started with the first of those who use them, and stopped with the last.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any, TypeVar

from drakit.base.clock import Clock
from drakit.client import Client, Resource
from drakit.informers.informer import Informer
from drakit.informers.reflector import ListScope

T = TypeVar("T")
_EVERYTHING = ListScope()


class Informers:
    """Invariant: one reflector per resource and scope, however many components read it."""

    def __init__(
        self, client: Client, *, clock: Clock | None = None, random: Random | None = None, streaming: bool = True
    ) -> None:
        self.client = client
        self._clock = clock or client.clock
        self._random = random or Random()
        self._streaming = streaming
        self._informers: dict[tuple[Resource[Any], ListScope], Informer[Any]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._started = False
        self._users = 0

    def of(self, resource: Resource[T], scope: ListScope = _EVERYTHING) -> Informer[T]:
        """The informer of a kind, or of a part of it. One that is asked for after the start is started at once."""
        found = self._informers.get((resource, scope))
        if found is None:
            found = self._informers[resource, scope] = Informer(
                self.client,
                resource,
                scope=scope,
                clock=self._clock,
                random=self._random,
                streaming=self._streaming,
            )
            if self._started:
                self._start(found)
        return found

    def start(self) -> None:
        """Begin to follow. Idempotent."""
        if not self._started:
            self._started = True
            for informer in self._informers.values():
                self._start(informer)

    @property
    def have_synced(self) -> bool:
        return all(informer.has_synced for informer in self._informers.values())

    async def wait_synced(self) -> None:
        """Until every informer that has been asked for has had the server's state."""
        while not self.have_synced:
            await asyncio.gather(*(informer.wait_synced() for informer in list(self._informers.values())))

    async def stop(self) -> None:
        """End all watches. Caches stay as they are. Idempotent."""
        tasks, self._tasks, self._started = self._tasks, [], False
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Informers]:
        """Follow as long as the context is open, of several the last one; inside it, the caches are filled."""
        self._users += 1
        self.start()
        try:
            await self.wait_synced()
            yield self
        finally:
            self._users -= 1
            if not self._users:
                await self.stop()

    def _start(self, informer: Informer[Any]) -> None:
        self._tasks.append(asyncio.create_task(informer.run(), name=f"informer {informer.resource.name}"))
