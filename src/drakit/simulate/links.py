"""An agent and the drivers of its node, without sockets between them.

In:  plugins of the driver kit, each served under a path.
Out: the agent's registry directory and dialer. How a call travels is a parameter.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from drakit.driverkit import KubeletPlugin
from drakit.driverkit.calls.answers import Answer
from drakit.driverkit.claims import ClaimRef, answered_request
from drakit.driverkit.serving.services import offered
from drakit.nodeagent.plugins.contract import (
    ClaimIdentity,
    DeviceAnswer,
    DeviceHealthReport,
    DriverPeer,
    PluginCallFailed,
    PluginInfo,
    PrepareAnswer,
    PrepareAnswers,
    RegistrationPeer,
)
from drakit.nodeagent.plugins.drivers import PLUGIN_TYPE

T = TypeVar("T")


class Carry(Protocol):
    """Takes a call to the process that answers it. Raise PluginCallFailed when no answer comes back."""

    async def __call__(self, process: str, call: Callable[[], Awaitable[T]]) -> T: ...


async def carry_at_once(process: str, call: Callable[[], Awaitable[T]]) -> T:
    del process
    return await call()


@dataclass(slots=True)
class ServedDriver:
    """A plugin that can be reached, by the process that it runs in; `stamp` tells a socket from its predecessor."""

    plugin: KubeletPlugin
    process: str
    stamp: int
    broken: asyncio.Event
    alive: bool = True


class NodeSockets:
    """The sockets of one node: the registry directory and the dialer of its agent."""

    def __init__(self, carry: Carry = carry_at_once) -> None:
        self._served: dict[str, ServedDriver] = {}
        self._carry = carry
        self._stamps = 0
        self._moved: list[Callable[[], None]] = []
        self._changed: list[asyncio.Future[None]] = []
        self._changes = 0
        self._looked = 0
        """As many changes there had been when the agent last looked."""

    def serve(self, path: str, plugin: KubeletPlugin, process: str = "") -> None:
        self._stamps += 1
        self._served[path] = ServedDriver(plugin, process, self._stamps, asyncio.Event())
        self._tell()

    def paths(self) -> list[str]:
        return list(self._served)

    def break_off(self, path: str) -> None:
        """The process is gone, its socket is not: what a kill leaves behind."""
        if (served := self._served.get(path)) is not None:
            served.alive = False
            served.broken.set()
            self._tell()

    def remove(self, path: str) -> None:
        if (served := self._served.pop(path, None)) is not None:
            served.alive = False
            served.broken.set()
            self._tell()

    async def close(self) -> None:
        """The agent asks no more; there is nothing here to give back."""

    def hang_up(self) -> None:
        """The agent's process is gone: nobody is told of changes any more."""
        self._moved.clear()
        self._changed.clear()

    # SocketDirectory

    def sockets(self) -> Mapping[str, tuple[int, int]]:
        self._looked = self._changes
        return {path: (served.stamp, 0) for path, served in self._served.items()}

    async def changed(self) -> None:
        if self._looked != self._changes:  # since the agent looked; a real directory has kept the event
            return
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._changed.append(waiting)
        await waiting

    # Dialer

    def registration(self, path: str) -> RegistrationPeer:
        return DriverLink(self, path, self._served.get(path))

    def driver(self, endpoint: str) -> DriverPeer:
        return DriverLink(self, endpoint, self._served.get(endpoint))

    # For links

    async def call(self, served: ServedDriver | None, call: Callable[[KubeletPlugin], Awaitable[T]]) -> T:
        if served is None or not served.alive:
            raise PluginCallFailed("Unavailable", "connection error: nobody listens on the socket")
        return await self._carry(served.process, lambda: call(served.plugin))

    def on_change(self, call: Callable[[], None]) -> None:
        self._moved.append(call)

    def forget(self, call: Callable[[], None]) -> None:
        if call in self._moved:
            self._moved.remove(call)

    def _tell(self) -> None:
        self._changes += 1
        waiting, self._changed = self._changed, []
        for each in waiting:
            if not each.done():
                each.set_result(None)
        for call in list(self._moved):
            call()


class DriverLink:
    """One connection of the agent to a driver."""

    def __init__(self, sockets: NodeSockets, path: str, served: ServedDriver | None) -> None:
        self._sockets = sockets
        self._path = path
        self._served = served
        self._told: list[Callable[[], None]] = []

    @property
    def connected(self) -> bool:
        return self._served is not None and self._served.alive

    def on_change(self, call: Callable[[], None]) -> None:
        self._told.append(call)
        self._sockets.on_change(call)

    async def get_info(self) -> PluginInfo:
        async def ask(plugin: KubeletPlugin) -> PluginInfo:
            return PluginInfo(PLUGIN_TYPE, plugin.driver.name, self._path, tuple(offered(plugin.board)))

        return await self._sockets.call(self._served, ask)

    async def notify(self, *, registered: bool, error: str) -> None:
        del error

        async def tell(plugin: KubeletPlugin) -> None:
            if registered:
                plugin.publisher.trigger()

        await self._sockets.call(self._served, tell)

    async def prepare(self, service: str, claims: Sequence[ClaimIdentity], *, limit: float) -> PrepareAnswers:
        del service
        answers = await self._timed(lambda plugin: plugin.prepare(_refs(claims)), limit)
        return {uid: _prepared(answer) for uid, answer in answers.items()}

    async def unprepare(self, service: str, claims: Sequence[ClaimIdentity], *, limit: float) -> Mapping[str, str]:
        del service
        errors: Mapping[str, str] = await self._timed(lambda plugin: plugin.unprepare(_refs(claims)), limit)
        return errors

    async def watch_health(self) -> AsyncIterator[Sequence[DeviceHealthReport]]:
        board = self._served.plugin.board if self._served is not None else None
        if board is None:
            raise PluginCallFailed("Unimplemented", "unknown service v1alpha1.DRAResourceHealth")
        served = self._served
        while not board.closed and served is not None and served.alive:
            changed = board.changed
            if board.reports is not None:
                yield [
                    DeviceHealthReport(each.pool, each.device, each.state.name.capitalize(), each.message, each.timeout)
                    for each in board.current()
                ]
            await _first(changed, served.broken)

    async def close(self) -> None:
        for call in self._told:
            self._sockets.forget(call)

    async def _timed(self, call: Callable[[KubeletPlugin], Awaitable[Any]], limit: float) -> Any:
        try:
            async with asyncio.timeout(limit):
                return await self._sockets.call(self._served, call)
        except TimeoutError:
            raise PluginCallFailed("DeadlineExceeded", "context deadline exceeded") from None


async def _first(*events: asyncio.Event) -> None:
    waiting = [asyncio.ensure_future(each.wait()) for each in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()


def _refs(claims: Sequence[ClaimIdentity]) -> list[ClaimRef]:
    return [ClaimRef(namespace=each.namespace, name=each.name, uid=each.uid) for each in claims]


def _prepared(answer: Answer) -> PrepareAnswer:
    devices = tuple(
        DeviceAnswer(device.pool, device.device, (answered_request(device),), tuple(ids), device.share_id)
        for device, ids in answer.devices
    )
    return PrepareAnswer(devices, answer.error)
