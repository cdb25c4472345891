"""The API server between driver and suite: sees what is refused, and can keep the driver waiting.

In:  requests to the server that the suite started itself.
Out: the server's answers, some of them late; the slices that it would not take, with the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from drakit.api.exchange import Request, Response, StatusContent
from drakit.apiserver import Server

_WRITES = ("POST", "PUT", "PATCH")
_REFUSED = (400, 422)


class ApiObserver:
    """Answers as the server does."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._held: dict[str, asyncio.Event] = {}
        self.refused_slices: list[str] = []
        """What the server said about slices that break its rules."""
        self.waiting = 0
        """Requests that are kept waiting now."""

    async def handle(self, request: Request) -> Response:
        # Before the server sees it: the answer is then as new as the moment in which it is sent.
        await self._hold(request)
        response = await self._server.handle(request)
        if request.method in _WRITES and response.code in _REFUSED and "/resourceslices" in request.path:
            content = response.content
            self.refused_slices.append(
                content.status.message if isinstance(content, StatusContent) else str(response.code)
            )
        return response

    @contextmanager
    def holding(self, claim: str) -> Iterator[None]:
        """Keep whoever reads that claim waiting as long as the context is open."""
        released = self._held[claim] = asyncio.Event()
        try:
            yield
        finally:
            del self._held[claim]
            released.set()

    async def _hold(self, request: Request) -> None:
        if not self._held or request.method != "GET" or "/resourceclaims/" not in request.path:
            return
        released = self._held.get(request.path.rpartition("/")[2])
        if released is not None:
            self.waiting += 1
            try:
                await released.wait()
            finally:
                self.waiting -= 1
