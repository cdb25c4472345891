"""Servers for tests: in process, over sockets, and one whose connections can be made to fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from drakit.api.exchange import EventStream, Request, Response, StatusContent, WatchEvent
from drakit.apiserver import Server, Settings, build_server
from drakit.apiserver.http.listener import Listener, Security, bind
from drakit.base import status
from drakit.base.clock import Clock, FakeClock
from drakit.client import Access, Client, ConnectionFailed, Fixed, InProcess, Trust
from drakit.client.transport.http import Http
from drakit.store import MemoryStore, Retention
from tests.builders.loop import on_loop as on_loop

Plain = dict[str, Any]


async def turns(count: int = 30) -> None:
    """Let other tasks run."""
    for _ in range(count):
        await asyncio.sleep(0)


async def until(condition: Callable[[], bool], *, most: int = 20_000) -> None:
    """Let other tasks run until something holds; a condition that never does is a failure."""
    for _ in range(most):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came true")


@asynccontextmanager
async def a_server(
    clock: Clock, settings: Settings | None = None, *, history: int | None = None
) -> AsyncIterator[Server]:
    retention = Retention(events=history) if history is not None else None
    async with MemoryStore(clock=clock, retention=retention) as store:
        chosen = settings or Settings(random=Random(7))
        async with await build_server(store, clock=clock, settings=chosen) as server:
            yield server


@asynccontextmanager
async def in_process(settings: Settings | None = None) -> AsyncIterator[Client]:
    clock = FakeClock()
    async with a_server(clock, settings) as server, Client(InProcess(server), clock=clock) as client:
        yield client


@asynccontextmanager
async def listening(server: Server, security: Security | None = None) -> AsyncIterator[str]:
    """The address of a server on a socket."""
    bound = bind("127.0.0.1", 0)
    scheme = "https" if security else "http"
    async with Listener(server, bound, security).running():
        yield f"{scheme}://127.0.0.1:{bound.getsockname()[1]}"


@asynccontextmanager
async def over_http(settings: Settings | None = None) -> AsyncIterator[Client]:
    clock = FakeClock()
    async with a_server(clock, settings) as server, listening(server) as url:
        access = Access(server=url, credentials=Fixed(), trust=Trust())
        async with Client(Http(access), clock=clock) as client:
            yield client


class Flaky:
    """A server behind a line that tests can cut. Give it to InProcess."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.down = False
        self.requests: list[Request] = []
        self.answers: list[Response | Exception] = []
        """What the next requests get instead of an answer of the server."""
        self.refuse: Callable[[Request], bool] = lambda _: False
        """Which requests are told that their options make no sense."""
        self._streams: list[_Cut] = []

    async def handle(self, request: Request) -> Response:
        self.requests.append(request)
        await asyncio.sleep(0)
        if self.down:
            raise ConnectionFailed("the line is down", sent=False)
        if self.answers:
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer
        if self.refuse(request):
            refusal = status.invalid("ListOptions", "meta.k8s.io", "", ())
            return Response(code=refusal.code, content=StatusContent(refusal))
        response = await self.server.handle(request)
        if isinstance(response.content, EventStream):
            cut = _Cut(response.content)
            self._streams.append(cut)
            return msgspec.structs.replace(response, content=cut)
        return response

    def cut(self, error: Exception | None = None) -> None:
        """Break every watch that is open: in the middle, or (without an error) as if the server ended it."""
        streams, self._streams = self._streams, []
        for stream in streams:
            stream.break_(error)

    @property
    def watches(self) -> list[Request]:
        return [request for request in self.requests if ("watch", "true") in request.query]


class _Cut(EventStream):
    def __init__(self, stream: EventStream) -> None:
        self._stream = stream
        self._broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def break_(self, error: Exception | None) -> None:
        if not self._broken.done():
            if error is None:
                self._broken.set_result(None)
            else:
                self._broken.set_exception(error)

    def lines(self) -> AsyncIterator[bytes]:
        raise AssertionError("nobody reads bytes in process")

    async def events(self) -> AsyncIterator[WatchEvent]:
        events = self._stream.events()
        try:
            while True:
                taking = asyncio.ensure_future(anext(events, None))
                try:
                    await asyncio.wait((taking, self._broken), return_when=asyncio.FIRST_COMPLETED)
                    if not taking.done():
                        self._broken.result()
                        return
                finally:
                    if not taking.done():
                        taking.cancel()
                        await asyncio.gather(taking, return_exceptions=True)
                event = taking.result()
                if event is None:
                    return
                yield event
        finally:
            await self.close()

    async def close(self) -> None:
        await self._stream.close()
        self._broken.cancel()


def config_map(name: str, **data: str) -> Plain:
    return {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data
    }  # fmt: skip


def names(objects: Sequence[Any]) -> list[str]:
    return [(getattr(each, "view", each)).metadata.name for each in objects]


def pki(directory: Path) -> Any:
    from datetime import UTC, datetime

    from drakit.apiserver.auth.certificates import Authority

    return Authority(directory, datetime.now(UTC))
