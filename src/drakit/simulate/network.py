"""What lies between processes: messages take time, and sometimes do not arrive, or twice, or late.

In:  requests of clients to the API server, calls of agents to drivers.
Out: the same at the other end, each in the process that it is for. What goes wrong is drawn from the seed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from random import Random
from typing import Any, TypeVar

from drakit.api.exchange import EventStream, OneObject, Request, Response, User, WatchEvent
from drakit.apiserver import Server
from drakit.client import ConnectionFailed, InProcess
from drakit.nodeagent.plugins.contract import PluginCallFailed
from drakit.simulate.loops import PROCESS, SeededLoop
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
        wire = Process("network", 0, loop)
        self.context = wire.context
        self.server: tuple[Process, Server] | None = None
        self.processes: dict[str, Process] = {}
        self.keeps_events = True
        """Whether the server takes Event objects: nothing but people depends on them."""
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

    def travel(self, arrive: Callable[..., None], *args: Any) -> None:
        """A message on its way belongs to nobody: it arrives whatever becomes of its sender."""
        late = self.happens("late")
        delay = (_LATE if late else _LATENCY) * self.random.random()
        self.loop.call_later(delay, arrive, *args, context=self.context)

    def line(self, user: User) -> ServerLine:
        return ServerLine(self, user)

    async def carry(self, process: str, call: Callable[[], Awaitable[T]]) -> T:
        """A call to a driver: its Carry."""
        owed: asyncio.Future[T] = self.loop.create_future()
        self.travel(self._call, process, call, owed)
        return await owed

    def _call(self, process: str, call: Callable[[], Awaitable[T]], owed: asyncio.Future[T]) -> None:
        target = self.processes.get(process)
        if target is None or not target.alive or self.happens("lost_requests"):
            fail(owed, PluginCallFailed("Unavailable", "connection error: no driver answers"))
            return
        if self.happens("repeated"):
            target.spawn(_alone(call))
        gone = PluginCallFailed("Unavailable", "transport is closing")
        target.answer(call, gone, lambda answer, error: self._called(owed, answer, error))

    def _called(self, owed: asyncio.Future[T], answer: Any, error: Exception | None) -> None:
        if error is None and self.happens("lost_answers"):
            error = PluginCallFailed("Unavailable", "connection reset")
        if error is not None:
            fail(owed, error)
        else:
            self.travel(settle, owed, answer)

    def note_written(self, response: Response) -> None:
        content = response.content
        if response.code < 300 and isinstance(content, OneObject):
            version = content.document.get("metadata", {}).get("resourceVersion", "")
            self.acknowledged = max(self.acknowledged, int(version) if str(version).isdecimal() else 0)


def settle(owed: asyncio.Future[T], answer: T) -> None:
    if not owed.done():
        owed.set_result(answer)


def fail(owed: asyncio.Future[Any], error: Exception) -> None:
    if not owed.done():
        owed.set_exception(error)


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
        owed: asyncio.Future[Response] = self._network.loop.create_future()
        self._network.travel(self._deliver, request, owed, PROCESS.get())
        return await owed

    def _deliver(self, request: Request, owed: asyncio.Future[Response], sender: str) -> None:
        network = self._network
        if network.server is None or not network.server[0].alive or network.happens("lost_requests"):
            fail(owed, ConnectionFailed("the API server does not answer", sent=False))
            return
        refused = self._refused(request)
        if refused is not None:
            settle(owed, refused)
            return
        process, server = network.server
        handler = InProcess(server, self._user)
        if request.method in _REPEATED and not _is_watch(request) and network.happens("repeated"):
            process.spawn(_alone(lambda: handler.handle(request)))
        process.answer(
            lambda: handler.handle(request),
            ConnectionFailed("the connection broke off", sent=True),
            lambda response, error: self._answered(request, owed, (process, sender), response, error),
        )

    def _answered(
        self,
        request: Request,
        owed: asyncio.Future[Response],
        ends: tuple[Process, str],
        response: Any,
        error: Exception | None,
    ) -> None:
        network = self._network
        if error is None and isinstance(response.content, EventStream):
            stream = CarriedStream(network, *ends, response.content)
            settle(owed, Response(code=response.code, content=stream))
            return
        if error is None and network.happens("lost_answers"):
            error = ConnectionFailed("the connection broke off", sent=True)
        if error is not None:
            fail(owed, error)
        else:
            network.travel(self._arrived, request, owed, response)

    def _arrived(self, request: Request, owed: asyncio.Future[Response], response: Response) -> None:
        if request.method in _WRITES:
            self._network.note_written(response)
        settle(owed, response)

    def _refused(self, request: Request) -> Response | None:
        network = self._network
        if not network.keeps_events and request.path.endswith("/events") and request.method == "POST":
            return failure_of(403)
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

    def __init__(self, network: Network, server: Process, reader: str, inner: EventStream) -> None:
        self._network = network
        self._inner = inner
        self._arrived: deque[WatchEvent] = deque()
        self._news = asyncio.Event()
        self._ended = False
        self._error: Exception | None = None
        self._due = 0.0
        self._ends = [each for each in (server, network.processes.get(reader)) if each is not None]
        # The end of the server is an error for whoever reads; that of the reader ends the watch at the server.
        for each in self._ends:
            each.connections[self] = None
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
        self._end(None)

    def break_off(self) -> None:
        """One of the two ends is gone."""
        self._end(ConnectionFailed("the watch broke off", sent=True))

    async def _carry(self) -> None:
        network = self._network
        try:
            async for event in self._inner.events():
                if network.happens("lagging_watches"):
                    await asyncio.sleep(_LAG * network.random.random())
                if network.happens("broken_watches"):
                    break
                self._due = max(self._due, network.loop.time() + _LATENCY * network.random.random())
                network.loop.call_at(self._due, self._arrive, event, context=network.context)
        finally:
            await self._inner.close()
        network.loop.call_at(self._due, self.break_off, context=network.context)

    def _arrive(self, event: WatchEvent) -> None:
        if not self._ended:
            self._arrived.append(event)
            self._news.set()

    def _end(self, error: Exception | None) -> None:
        if self._ended:
            return
        self._ended = True
        self._error = error
        for each in self._ends:
            each.connections.pop(self, None)
        self._news.set()
        self._pump.cancel()
