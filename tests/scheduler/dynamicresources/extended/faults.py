"""A way to the server on which chosen writes fail: not done at all, or done and their answer lost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from drakit.api.exchange import Request, Response, StatusContent
from drakit.base.status import failure
from drakit.client import ConnectionFailed, Transport

WRITES = ("POST", "PUT", "PATCH", "DELETE")
Chosen = Callable[[Request], bool]


class Faulty:
    """`writes` are those that were done, as method and the end of the path; `before` happens before one, once."""

    in_process = True
    page_size = 0

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.refuse: Chosen = lambda _: False
        self.lose: Chosen = lambda _: False
        self.before: dict[str, Callable[[], Awaitable[None]]] = {}
        self.writes: list[str] = []
        self.refused: list[str] = []
        self.reads = 0

    async def handle(self, request: Request) -> Response:
        if request.method not in WRITES:
            self.reads += 1
            return await self._inner.handle(request)
        what = written(request)
        if what in self.before:
            await self.before.pop(what)()
        if self.refuse(request):
            self.refused.append(what)
            return Response(code=500, content=StatusContent(failure(500, "InternalError", "the disk is full")))
        response = await self._inner.handle(request)
        self.writes.append(what)
        if self.lose(request):
            raise ConnectionFailed("the line is cut", sent=True)
        return response

    async def close(self) -> None:
        return


def written(request: Request) -> str:
    """`POST resourceclaims`, `PUT resourceclaims/status` and so on."""
    parts = request.path.strip("/").split("/")
    kind = next(each for each in ("resourceclaims", "pods", "events") if each in parts)
    rest = parts[parts.index(kind) + 2 :]
    return f"{request.method} {'/'.join((kind, *rest))}"
