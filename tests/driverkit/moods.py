"""A server that refuses, hangs or is away, as tests want it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from drakit.api.exchange import Request, Response, StatusContent
from drakit.base import status
from tests.driverkit.node import LedNode


class Moody:
    """A server in a mood: what requests get instead of an answer."""

    def __init__(self, node: LedNode) -> None:
        self._server = node.server
        self.mood: Callable[[Request], Response | Exception | None] = lambda _: None
        self.refused = 0
        self.hangs = False

    async def handle(self, request: Request) -> Response:
        await asyncio.sleep(0)
        if self.hangs:
            await asyncio.Event().wait()
        answer = self.mood(request)
        if answer is None:
            return await self._server.handle(request)
        self.refused += 1
        if isinstance(answer, Exception):
            raise answer
        return answer


def refusal(code: int, reason: str) -> Response:
    return Response(code=code, content=StatusContent(status.failure(code, reason, f"moody {code}")))
