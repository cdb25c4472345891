"""Events end by themselves: an hour after their last write, unless set otherwise.

In:  writes of events, as this process makes them; the clock.
Out: deletions. Watches see them like any other.

Events stand in the order of their last write, so a round looks only at those that have ended.

A shared store ends by itself what is written with a lifetime. There only the events that were found at the start are
looked after, as they may have come from elsewhere; one that is written again has a lifetime from then on.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from drakit.api.text.times import parse_time
from drakit.apiserver.failures import ApiError
from drakit.apiserver.kinds.events import CORE
from drakit.apiserver.storage.objects import StoredObject
from drakit.apiserver.storage.objectstore import Conflict, ObjectStore, prefix_of
from drakit.base.clock import Clock
from drakit.base.errors import Retryable
from drakit.store import StoreClosed

log = logging.getLogger("drakit.apiserver")

PERIOD = 60.0
AT_ONCE = 200
"""Deletions before others get a turn."""
_BEGINNING = datetime.fromtimestamp(0, UTC)


class EventExpiry:
    def __init__(self, objects: ObjectStore, clock: Clock, ttl: float) -> None:
        self._objects = objects
        self._clock = clock
        self._ttl = ttl
        self._written: OrderedDict[str, float] = OrderedDict()
        self._found: dict[str, int] = {}
        """Revisions of the events that were there at the start."""
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Take in the events that are there; from then on follow. Once."""
        self._objects.observers.append(self._observe)
        now, monotonic = self._clock.now(), self._clock.monotonic()
        page = await self._objects.store.list(prefix_of(CORE))
        found = [(_last_write(self._objects.from_record(CORE, each).document), each.key) for each in page.records]
        self._found = {each.key: each.revision for each in page.records}
        for moment, key in sorted(found):
            self._written.setdefault(key, monotonic - max((now - moment).total_seconds(), 0.0))
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Idempotent, also before `start`."""
        if self._observe in self._objects.observers:
            self._objects.observers.remove(self._observe)
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _observe(self, stored: StoredObject, *, gone: bool) -> None:
        if stored.kind is not CORE:
            return
        if gone or self._objects.store.shared:
            self._written.pop(stored.key, None)
            self._found.pop(stored.key, None)
        else:
            self._written[stored.key] = self._clock.monotonic()
            self._written.move_to_end(stored.key)

    async def _run(self) -> None:
        while True:
            await self._clock.sleep(min(PERIOD, self._ttl))
            try:
                await self._sweep()
            except StoreClosed:
                return
            except Retryable as error:
                log.warning("events that have ended cannot be deleted: %s", error)

    async def _sweep(self) -> None:
        ended = self._clock.monotonic() - self._ttl
        count = 0
        while self._written:
            key, written = next(iter(self._written.items()))
            if written > ended:
                return
            self._written.pop(key)
            await self._delete(key)
            count += 1
            if count % AT_ONCE == 0:
                await asyncio.sleep(0)

    async def _delete(self, key: str) -> None:
        namespace, _, name = key.removeprefix(prefix_of(CORE)).rpartition("/")
        try:
            found = await self._objects.find(CORE, namespace, name)
            revision = self._found.pop(key, 0)
            if found is not None and (found.revision == revision or not self._objects.store.shared):
                await self._objects.delete(found)
        except (Conflict, ApiError):
            # Somebody wrote or deleted it just now: written anew, it is in the list again.
            return


def _last_write(event: Mapping[str, Any]) -> datetime:
    """As far as the event tells it."""
    times = (
        (event.get("metadata") or {}).get("creationTimestamp"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        (event.get("series") or {}).get("lastObservedTime"),
    )
    return max((parse_time(each) for each in times if each), default=_BEGINNING)
