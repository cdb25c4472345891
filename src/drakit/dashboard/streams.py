"""Server-sent events of one page: the map, then its changes, each with the resource version as its id.

In:  a view, and the id of the last event that the page has heard.
Out: events: `map` (all of it or what changed), `state` (who looks, what may not be seen, whether it is current), and a
     comment now and then, by which the page knows that the connection lives.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

import msgspec

from drakit.api.exchange import OpenBody
from drakit.base.errors import DrakitError
from drakit.dashboard.live import GATHER_SECONDS, CellChanges, LiveView

HEARTBEAT_SECONDS = 5.0
RETRY_MILLISECONDS = 1000
_PAUSES = 3
"""A map that takes long to work out is worked out less often: a quarter of a core at most."""
_encode = msgspec.json.Encoder().encode


class EventsBody(OpenBody):
    def __init__(self, view: AbstractAsyncContextManager[LiveView], last_id: str) -> None:
        self._view = view
        self._last_id = last_id
        self._stack = AsyncExitStack()
        self._live: LiveView | None = None

    async def start(self) -> None:
        """Open the view. Errors are raised here, before the response begins, so that they become its status."""
        self._live = await self._stack.enter_async_context(self._view)

    async def pieces(self) -> AsyncIterator[bytes]:
        live = self._live
        if live is None:
            return
        yield f"retry: {RETRY_MILLISECONDS}\n\n".encode()
        said: Any = None
        async with live.news() as news:
            while True:
                # Cleared before the changes are read: a change that comes while they are sent sets it again.
                news.clear()
                try:
                    for change in await live.changes_since(self._last_id):
                        yield event("map", change, change.id)
                        self._last_id = change.id
                except DrakitError as error:
                    yield event("state", {"problem": str(error)})
                state = {"user": live.user, "forbidden": live.forbidden, "problem": live.problem}
                if state != said:
                    yield event("state", state)
                    said = state
                while not await _within(news, HEARTBEAT_SECONDS):
                    yield b": alive\n\n"
                await asyncio.sleep(max(GATHER_SECONDS, live.seconds * _PAUSES))

    async def close(self) -> None:
        await self._stack.aclose()


def event(name: str, data: CellChanges | dict[str, Any], id_: str = "") -> bytes:
    """One server-sent event. The encoded JSON has no line breaks, so that it is one line of data."""
    head = f"id: {id_}\nevent: {name}\n" if id_ else f"event: {name}\n"
    return head.encode() + b"data: " + _encode(data) + b"\n\n"


async def _within(news: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await news.wait()
    except TimeoutError:
        return False
    return True
