"""A watch, as the client hands it out.

In:  the events of a transport's stream.
Out: typed changes in the order in which they happened. An ERROR of the server is an exception (Expired, above all).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Generic, TypeVar

import msgspec

from drakit.api.exchange import EventStream
from drakit.base.status import failure
from drakit.client.decoder import Reader
from drakit.client.failures import failed

ADDED, MODIFIED, DELETED, BOOKMARK = "ADDED", "MODIFIED", "DELETED", "BOOKMARK"

T = TypeVar("T")


class WatchedChange(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """`type` is ADDED, MODIFIED, DELETED or BOOKMARK; a bookmark has no object, only how far the watch has come."""

    type: str
    object: T | None
    resource_version: str
    initial_end: bool = False
    """The bookmark after the last of the objects that were there when a streaming list began."""


Open = Callable[[], Awaitable[tuple[EventStream, Reader[T]]]]


class Watch(Generic[T]):
    """`async with client.watch(…) as changes: async for change in changes`. Ends when the server ends it."""

    def __init__(self, open_: Open[T]) -> None:
        self._open = open_
        self._stream: EventStream | None = None
        self._changes: AsyncGenerator[WatchedChange[T], None] | None = None

    async def __aenter__(self) -> AsyncGenerator[WatchedChange[T], None]:
        self._stream, reader = await self._open()
        self._changes = _changes(self._stream, reader)
        return self._changes

    async def __aexit__(self, *_: object) -> None:
        if self._changes is not None:
            await self._changes.aclose()
        if self._stream is not None:
            await self._stream.close()


async def _changes(stream: EventStream, reader: Reader[T]) -> AsyncGenerator[WatchedChange[T], None]:
    wrap = reader.wrap
    events = stream.events()
    async with aclosing(events):  # type: ignore[type-var]  # every stream's events are a generator
        async for event in events:
            found = event.object
            if found is not None:
                yield WatchedChange(event.type, wrap(found), event.resource_version)
            elif event.type == BOOKMARK:
                yield WatchedChange(BOOKMARK, None, event.resource_version, event.initial_end)
            else:
                raise failed(event.status or failure(500, "InternalError", f"the watch sent {event.type}"))
