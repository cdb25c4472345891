"""One kind, kept current in memory, and those who want to know when it changes.

In:  what a reflector saw.
Out: a cache, and calls to handlers: one per change, in order, after the cache has it. A handler sees (old, new):
     (none, new) is an addition, (old, none) a deletion. The same version is never told twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable, Iterable
from random import Random
from typing import Any, Generic, TypeVar

from drakit.base.clock import Clock
from drakit.client import Client, Key, Resource, key_of, metadata_of
from drakit.informers.cache import IndexFunction, ObjectCache
from drakit.informers.reflector import ListScope, Reflector

log = logging.getLogger("drakit.informers")

T = TypeVar("T")
Handler = Callable[[T | None, T | None], None]


class Informer(Generic[T]):
    """Handlers are plain functions that return soon: they put keys on queues or update indexes.

    Invariant: handlers have been called for exactly what is in the cache.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource[T],
        *,
        scope: ListScope | None = None,
        clock: Clock | None = None,
        random: Random | None = None,
        streaming: bool = True,
    ) -> None:
        self.resource = resource
        self.cache: ObjectCache[T] = ObjectCache()
        self.reflector = Reflector(client, resource, self, scope=scope, clock=clock, random=random, streaming=streaming)
        self._handlers: list[Handler[T]] = []
        self._after_lists: list[Callable[[], None]] = []
        self._synced = asyncio.Event()

    async def run(self) -> None:
        """Until cancelled."""
        await self.reflector.run()

    @property
    def has_synced(self) -> bool:
        """Whether the cache has had the server's whole state once, and handlers know of it."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        await self._synced.wait()

    def subscribe(self, handler: Handler[T]) -> Callable[[], None]:
        """Tell `handler` of what is there, at once, and of every change from then on. The result ends that."""
        self._handlers.append(handler)
        for obj in self.cache.all():
            self._tell((handler,), None, obj)
        return lambda: self._handlers.remove(handler)

    def after_list(self, call: Callable[[], None]) -> None:
        """Call after every list of the whole state, once handlers know of it. What came and went before is not told."""
        self._after_lists.append(call)

    def on(
        self,
        *,
        add: Callable[[T], None] | None = None,
        update: Callable[[T, T], None] | None = None,
        delete: Callable[[T], None] | None = None,
    ) -> Callable[[], None]:
        """As `subscribe`, with a function for each sort of change."""

        def handler(old: T | None, new: T | None) -> None:
            if old is None and new is not None:
                if add is not None:
                    add(new)
            elif new is None and old is not None:
                if delete is not None:
                    delete(old)
            elif old is not None and new is not None and update is not None:
                update(old, new)

        return self.subscribe(handler)

    def enqueue(self, add: Callable[[Key], Any], keys: Callable[[T], Any] | None = None) -> Callable[[], None]:
        """Put a key on a queue at every change: the object's own, or those that `keys` gives for its old and new."""

        def handler(old: T | None, new: T | None) -> None:
            if keys is None:
                add(key_of(new if new is not None else old))
                return
            for each in dict.fromkeys(key for obj in (old, new) if obj is not None for key in keys(obj)):
                add(each)

        return self.subscribe(handler)

    def add_index(self, name: str, function: IndexFunction[T]) -> None:
        self.cache.add_index(name, function)

    def by(self, index: str, value: Hashable) -> list[T]:
        return self.cache.by(index, value)

    # What the reflector calls.

    def replace(self, objects: dict[Key, T]) -> None:
        for key in [key for key in self.cache.keys() if key not in objects]:  # noqa: SIM118 - a view of keys
            self._tell(self._handlers, self.cache.remove(key), None)
        for obj in objects.values():
            self.put(obj)
        for call in self._after_lists:
            call()
        self._synced.set()

    def put(self, obj: T) -> None:
        metadata = metadata_of(obj)
        key = Key(metadata.namespace, metadata.name)
        old = self.cache.get(key)
        # After a reconnect the server tells again what is known already. An object that was deleted and made again
        # meanwhile is one change here: handlers to which that matters compare uids.
        if old is not None and metadata_of(old).resource_version == metadata.resource_version:
            return
        self.cache.put(key, obj)
        self._tell(self._handlers, old, obj)

    def remove(self, obj: T) -> None:
        if self.cache.remove(key_of(obj)) is not None:
            self._tell(self._handlers, obj, None)

    def _tell(self, handlers: Iterable[Handler[T]], old: T | None, new: T | None) -> None:
        """Call handlers. If one raises, log it: other handlers and the cache must go on."""
        for handler in handlers:
            try:
                handler(old, new)
            except Exception:
                what = key_of(new if new is not None else old)
                log.exception("a handler of %s failed on %s", self.resource.name, what)
