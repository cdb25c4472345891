"""How requests travel: the seam between a client and whoever answers it.

In:  a Request of `drakit.api.exchange`.
Out: a Response, whatever its code. A transport raises only when no answer came: ConnectionFailed, RequestTimeout.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from drakit.api.exchange import Handler, Request, Response, User


class Transport(Handler, Protocol):
    """`in_process` says that objects are handed over as they are; else requests carry bytes, and answers too."""

    in_process: bool
    page_size: int
    """How many objects to ask for at a time; zero is all."""

    async def close(self) -> None:
        """Idempotent. Streams that are open end."""
        ...


class InProcess:
    """Calls a handler directly: no sockets, no encoding. The user is who the caller says it is."""

    in_process = True
    page_size = 0

    def __init__(self, handler: Handler, user: User | None = None) -> None:
        self._handler = handler
        self.user = user or User(name="system:admin", groups=("system:masters", "system:authenticated"))

    async def handle(self, request: Request) -> Response:
        if request.user is None:
            request = msgspec.structs.replace(request, user=self.user)
        return await self._handler.handle(request)

    async def close(self) -> None:
        return
