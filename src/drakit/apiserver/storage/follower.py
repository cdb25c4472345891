"""Keep an index of some kinds up to date, so that a question to it needs no read of the store.

In:  writes of this process, at once; writes of other processes, by a watch.
Out: calls of the index: each object as it is now, in the order of writes.

A write of this process is in the index before the writer gets its answer: who creates a role binding can rely on it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Protocol

from drakit.api.registry import Kind
from drakit.apiserver.storage.objects import StoredObject
from drakit.apiserver.storage.objectstore import ObjectStore, prefix_of
from drakit.base.errors import Retryable
from drakit.store import Compacted, StoreClosed, StoreEvent, StoreWatch, WatcherTooSlow

log = logging.getLogger("drakit.apiserver.auth")
_V2 = logging.INFO - 2  # what `-v 2` lets through
_RETRY_SECONDS = 1.0


class Index(Protocol):
    def put(self, kind: Kind, document: dict[str, Any]) -> None:
        """An object was created or changed."""
        ...

    def remove(self, kind: Kind, namespace: str, name: str) -> None:
        """An object was deleted. Idempotent."""
        ...


class Follower:
    """Feeds an index. Invariant: `_seen` has, for each key, the revision of the last write that the index knows.

    A write of this process arrives twice, first by the observer and later by the watch. `_seen` makes the second one,
    and anything older, have no effect.
    """

    def __init__(self, objects: ObjectStore, kinds: Sequence[Kind], index: Index) -> None:
        self._objects = objects
        self._kinds = {prefix_of(kind): kind for kind in kinds}
        self._index = index
        self._seen: dict[str, int] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._watches: dict[str, StoreWatch] = {}
        self._moved = asyncio.Event()
        """Set, and replaced, each time the index has learnt something."""
        self._stopped = False

    async def start(self) -> None:
        """Read everything; from then on follow. Once."""
        # Before the first read: a write that comes between the read and the watch would be missed otherwise.
        self._objects.observers.append(self._observe)
        for prefix, kind in self._kinds.items():
            revision = await self._load(prefix, kind)
            self._tasks.append(asyncio.create_task(self._follow(prefix, kind, revision)))

    def behind(self) -> list[str]:
        """The kinds that were not read, or are not followed any more."""
        followed = [not task.done() for task in self._tasks]
        running = [*followed, *([False] * (len(self._kinds) - len(followed)))]
        return [kind.qualified for kind, alive in zip(self._kinds.values(), running, strict=True) if not alive]

    def progress(self, kind: Kind) -> int:
        """A revision up to which the index has every write of a kind, whoever made it; 0 while that is not known."""
        watch = self._watches.get(prefix_of(kind))
        return watch.progress if watch is not None else 0

    async def catch_up(self) -> None:
        """Wait until the index has all that any server has stored by now. Raise StoreClosed, StoreUnavailable."""
        # The store may be behind other servers itself: this makes it as new as they are.
        newest = await self._objects.store.revision()
        while any(self.progress(kind) < newest for kind in self._kinds.values()):
            if self._stopped:
                raise StoreClosed
            await self._moved.wait()

    async def stop(self) -> None:
        """Idempotent, also before `start`."""
        self._stopped = True
        self._move()
        if self._observe in self._objects.observers:
            self._objects.observers.remove(self._observe)
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _load(self, prefix: str, kind: Kind) -> int:
        page = await self._objects.store.list(prefix)
        present = {record.key for record in page.records}
        # Keys that vanished while nobody watched.
        for key in [key for key in self._seen if key.startswith(prefix) and key not in present]:
            self._forget(kind, key, page.revision)
        for record in page.records:
            self._take(kind, self._objects.from_record(kind, record))
        return page.revision

    async def _follow(self, prefix: str, kind: Kind, revision: int | None) -> None:
        """Follow the watch until the store is closed. A watch that was too slow starts again with a full read."""
        while True:
            try:
                if revision is None:
                    revision = await self._load(prefix, kind)
                async with await self._objects.store.watch(prefix, after=revision) as watch:
                    self._watches[prefix] = watch
                    self._move()
                    while events := await watch.take():
                        for event in events:
                            self._apply(kind, event)
                        self._move()
            except StoreClosed:
                return
            except (WatcherTooSlow, Compacted):
                log.log(_V2, "reading all %s again", kind.qualified)
            except Retryable as error:
                log.warning("cannot follow %s: %s", kind.qualified, error)
                await asyncio.sleep(_RETRY_SECONDS)
            finally:
                self._watches.pop(prefix, None)
            revision = None

    def _move(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    def _apply(self, kind: Kind, event: StoreEvent) -> None:
        if event.record is not None:
            self._take(kind, self._objects.from_record(kind, event.record))
            return
        self._forget(kind, event.key, event.revision)
        self._seen.pop(event.key, None)  # nothing older can follow

    def _observe(self, stored: StoredObject, *, gone: bool) -> None:
        kind = stored.kind
        if prefix_of(kind) not in self._kinds:
            return
        if gone:
            self._forget(kind, stored.key, stored.revision)
        else:
            self._take(kind, stored)

    def _take(self, kind: Kind, stored: StoredObject) -> None:
        # Writes of this process come first by the observer. The watch tells of them again, later: no effect then.
        if stored.revision > self._seen.get(stored.key, 0):
            self._seen[stored.key] = stored.revision
            self._index.put(kind, stored.document)

    def _forget(self, kind: Kind, key: str, revision: int) -> None:
        """Remove a key. It stays in `_seen` until the watch reaches the deletion: older writes may still come."""
        if revision > self._seen.get(key, 0):
            self._seen[key] = revision
            namespace, _, name = key.removeprefix(prefix_of(kind)).rpartition("/")
            self._index.remove(kind, namespace, name)
