"""What lies between processes: messages take time, and sometimes do not arrive, or twice, or late.

In:  requests of clients to the API server, calls of agents to drivers.
Out: the same at the other end, each in the process that it is for. What goes wrong is drawn from the seed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import suppress
from random import Random
from typing import Any, TypeVar

from drakit.api.exchange import EventStream, OneObject, Request, Response, User, WatchEvent
from drakit.apiserver import Server
from drakit.client import ConnectionFailed, InProcess
from drakit.nodeagent.plugins.contract import PluginCallFailed
from drakit.simulate.loops import SeededLoop
from drakit.simulate.processes import Process
from drakit.simulate.troubles import failure_of

T = TypeVar("T")
_LATENCY = 0.002
_LATE = 0.5
_LAG = 30.0
_REPEATED = ("GET", "PUT", "DELETE")
_CHANGES = ("PUT", "PATCH")
_WRITES = ("POST", *_CHANGES, "DELETE")


class Weather:
    """How likely each trouble is, per message; all zero when the faults have stopped."""

    def __init__(self) -> None:
        self.lost_requests = 0.0
        self.lost_answers = 0.0
        self.late = 0.0
        self.repeated = 0.0
        self.lagging_watches = 0.0
        self.broken_watches = 0.0
        self.conflicts = 0.0
        self.refusals = 0.0
        self.errors = 0.0

    def clear(self) -> None:
        for name in vars(self):
            setattr(self, name, 0.0)


class Network:
    """Invariant: a message is handled in the process that it is for, and its answer in the one that asked."""

    def __init__(self, loop: SeededLoop, random: Random) -> None:
        self.loop = loop
        self.random = random
        self.weather = Weather()
        self.wire = Process("network", 0, loop)
        self.server: tuple[Process, Server] | None = None
        self.processes: dict[str, Process] = {}
        self.acknowledged = 0
        """The highest revision that anybody was told of as the result of a write."""
        self.met: Callable[[str], None] = lambda _: None
        """Told of each trouble by its name."""

    def happens(self, name: str) -> bool:
        chance = getattr(self.weather, name)
        if chance and self.random.random() < chance:
            self.met(name)
            return True
        return False

    async def travel(self) -> None:
        late = self.happens("late")
        await asyncio.sleep((_LATE if late else _LATENCY) * self.random.random())

    def line(self, user: User) -> ServerLine:
        return ServerLine(self, user)

    async def carry(self, process: str, call: Callable[[], Awaitable[T]]) -> T:
        """A call to a driver: its Carry."""
        answer: T = await self.send(self._call(process, call))
        return answer

    async def _call(self, process: str, call: Callable[[], Awaitable[T]]) -> T:
        await self.travel()
        target = self.processes.get(process)
        if target is None or not target.alive or self.happens("lost_requests"):
            raise PluginCallFailed("Unavailable", "connection error: no driver answers")
        if self.happens("repeated"):
            target.spawn(_alone(call))
        owed = target.promise(PluginCallFailed("Unavailable", "transport is closing"))
        target.spawn(_answer(call, owed))
        answer: T = await owed
        await self.travel()
        if self.happens("lost_answers"):
            raise PluginCallFailed("Unavailable", "connection reset")
        return answer

    async def send(self, message: Coroutine[Any, Any, T]) -> T:
        """A message on its way belongs to nobody: it arrives whatever becomes of its sender."""
        owed: asyncio.Future[T] = self.loop.create_future()
        self.wire.spawn(_answer(lambda: message, owed))
        return await owed

    def note_written(self, response: Response) -> None:
        content = response.content
        if response.code < 300 and isinstance(content, OneObject):
            version = content.document.get("metadata", {}).get("resourceVersion", "")
            self.acknowledged = max(self.acknowledged, int(version) if str(version).isdecimal() else 0)


async def _answer(call: Callable[[], Awaitable[T]], owed: asyncio.Future[T]) -> None:
    try:
        result = await call()
    except Exception as error:
        if not owed.done():
            owed.set_exception(error)
    else:
        if not owed.done():
            owed.set_result(result)


async def _alone(call: Callable[[], Awaitable[object]]) -> None:
    """A repeated message: nobody waits for its answer."""
    with suppress(Exception):  # whoever sent it has its own answer
        await call()


class ServerLine:
    """The transport of one client. Objects are handed over as they are: nobody changes them."""

    in_process = True
    page_size = 0

    def __init__(self, network: Network, user: User) -> None:
        self._network = network
        self._user = user

    async def handle(self, request: Request) -> Response:
        return await self._network.send(self._deliver(request))

    async def _deliver(self, request: Request) -> Response:
        network = self._network
        await network.travel()
        if network.server is None or not network.server[0].alive or network.happens("lost_requests"):
            raise ConnectionFailed("the API server does not answer", sent=False)
        refused = self._refused(request)
        if refused is not None:
            return refused
        process, server = network.server
        handler = InProcess(server, self._user)
        if request.method in _REPEATED and not _is_watch(request) and network.happens("repeated"):
            process.spawn(_alone(lambda: handler.handle(request)))
        owed = process.promise(ConnectionFailed("the connection broke off", sent=True))
        process.spawn(_answer(lambda: handler.handle(request), owed))
        response: Response = await owed
        if isinstance(response.content, EventStream):
            return Response(code=response.code, content=CarriedStream(network, process, response.content))
        await network.travel()
        if network.happens("lost_answers"):
            raise ConnectionFailed("the connection broke off", sent=True)
        if request.method in _WRITES:
            network.note_written(response)
        return response

    def _refused(self, request: Request) -> Response | None:
        network = self._network
        if request.method in _CHANGES and network.happens("conflicts"):
            return failure_of(409)
        if network.happens("refusals"):
            return failure_of(429)
        return failure_of(500) if network.happens("errors") else None

    async def close(self) -> None:
        return


def _is_watch(request: Request) -> bool:
    return request.parameter("watch") in ("true", "1")


class CarriedStream(EventStream):
    """A watch that crosses the network: in order, late, and broken off when either end is gone."""

    def __init__(self, network: Network, server: Process, inner: EventStream) -> None:
        self._network = network
        self._inner = inner
        self._arrived: deque[WatchEvent] = deque()
        self._news = asyncio.Event()
        self._ended = False
        self._error: Exception | None = None
        # The end of the server is an error for whoever reads.
        self._owed = server.promise(ConnectionFailed("the watch broke off", sent=True))
        self._owed.add_done_callback(self._end)
        self._pump = server.spawn(self._carry())

    def lines(self) -> AsyncIterator[bytes]:
        raise TypeError("a simulated watch carries events")

    async def events(self) -> AsyncIterator[WatchEvent]:
        while True:
            while self._arrived:
                yield self._arrived.popleft()
            if self._ended:
                if self._error is not None:
                    raise self._error
                return
            self._news.clear()
            await self._news.wait()

    async def close(self) -> None:
        if not self._owed.done():
            self._owed.set_result(None)

    async def _carry(self) -> None:
        network = self._network
        async for event in self._inner.events():
            lagging = network.happens("lagging_watches")
            await asyncio.sleep((_LAG if lagging else _LATENCY) * network.random.random())
            if self._owed.done() or network.happens("broken_watches"):
                break
            self._arrived.append(event)
            self._news.set()
        await self._inner.close()
        if not self._owed.done():
            self._owed.set_exception(ConnectionFailed("the watch broke off", sent=True))

    def _end(self, owed: asyncio.Future[None]) -> None:
        self._ended = True
        self._error = owed.exception()  # type: ignore[assignment]
        self._news.set()
