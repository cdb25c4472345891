"""The DRA drivers of the node: their instances, which one is called, and what happens when none is there.

In:  registrations.
Out: prepare and unprepare calls; word of arrivals, and of drivers without a connection, so that their slices can go.

Several instances of one driver are there during a rolling update. The one that registered last and has a connection
is called; when it goes, the one before it is.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from drakit.base.clock import Clock
from drakit.base.errors import Retryable
from drakit.nodeagent.plugins.contract import (
    FULL_NAMES,
    SERVICES,
    ClaimIdentity,
    Dialer,
    DriverPeer,
    PluginCallFailed,
    PluginInfo,
    PrepareAnswers,
)
from drakit.nodeagent.plugins.registration import RegistrationRefused

log = logging.getLogger("drakit.nodeagent")

T = TypeVar("T")
PLUGIN_TYPE = "DRAPlugin"
CALL_SECONDS = 45.0
ABSENCE_SECONDS = 30.0


class DriverNotRegistered(Retryable):
    """No instance of the driver is registered."""


class CallObserver(Protocol):
    """Sees each gRPC call to a driver: its full method, the code it ended with, and how long it took."""

    def __call__(self, driver: str, method: str, code: str, seconds: float) -> None: ...


@dataclass(slots=True)
class RegisteredDriver:
    name: str
    endpoint: str
    socket: str
    service: str
    peer: DriverPeer
    number: int
    health: asyncio.Task[None] | None = None


@dataclass(slots=True)
class DriverListeners:
    """Who wants to know. All are plain functions that return soon."""

    arrived: list[Callable[[str], None]] = field(default_factory=list)
    """A driver has registered or has a connection again."""
    absent: list[Callable[[str], None]] = field(default_factory=list)
    """A driver has had no connection for 30 s."""


class Drivers:
    """The handler of DRA plugins. Invariant: an endpoint of a driver has at most one instance."""

    def __init__(
        self,
        dialer: Dialer,
        clock: Clock,
        *,
        observe: CallObserver | None = None,
        watch_health: Callable[[str, DriverPeer], Awaitable[None]] | None = None,
    ) -> None:
        """`watch_health` follows the health stream of an instance until cancelled."""
        self.listeners = DriverListeners()
        self._dialer = dialer
        self._clock = clock
        self._observe = observe
        self._watch_health = watch_health
        self._instances: dict[str, list[RegisteredDriver]] = {}
        self._numbers = itertools.count()
        self._absences: dict[str, asyncio.Task[None]] = {}

    # Registration

    def validate(self, info: PluginInfo, endpoint: str) -> None:
        choose_service(info, endpoint)

    def register(self, info: PluginInfo, endpoint: str, socket: str) -> None:
        present = self._instances.setdefault(info.name, [])
        if any(each.endpoint == endpoint for each in present):
            raise RegistrationRefused(f"endpoint {endpoint} already registered for DRA driver plugin {info.name}")
        peer = self._dialer.driver(endpoint)
        service = choose_service(info, endpoint)
        instance = RegisteredDriver(info.name, endpoint, socket, service, peer, next(self._numbers))
        present.append(instance)
        peer.on_change(lambda: self._reconsider(info.name))
        if self._watch_health is not None:
            instance.health = asyncio.ensure_future(self._watch_health(info.name, peer))
        self._reconsider(info.name)
        self._tell_arrival(info.name)

    async def deregister(self, socket: str) -> None:
        for name, present in list(self._instances.items()):
            for instance in [each for each in present if each.socket == socket]:
                present.remove(instance)
                if not present:
                    del self._instances[name]
                await self._close(instance)
                self._reconsider(name)

    async def stop(self) -> None:
        """Close everything. Idempotent."""
        instances, self._instances = [each for group in self._instances.values() for each in group], {}
        for instance in instances:
            await self._close(instance)
        absences, self._absences = list(self._absences.values()), {}
        for task in absences:
            task.cancel()
        await asyncio.gather(*absences, return_exceptions=True)

    async def _close(self, instance: RegisteredDriver) -> None:
        if instance.health is not None:
            instance.health.cancel()
            await asyncio.gather(instance.health, return_exceptions=True)
        await instance.peer.close()

    # Presence

    def names(self) -> Iterable[str]:
        return self._instances.keys()

    def is_usable(self, name: str) -> bool:
        return any(each.peer.connected for each in self._instances.get(name, ()))

    def check_registered(self, name: str) -> None:
        if name not in self._instances:
            raise DriverNotRegistered(f"DRA driver {name} is not registered")

    def _reconsider(self, name: str) -> None:
        """Start or cancel the timer after which a driver without a connection counts as gone."""
        running = self._absences.get(name)
        if self.is_usable(name):
            if running is not None:
                running.cancel()
                del self._absences[name]
                self._tell_arrival(name)
        elif running is None:
            self._absences[name] = asyncio.create_task(self._await_return(name), name=f"absence of {name}")

    async def _await_return(self, name: str) -> None:
        await self._clock.sleep(ABSENCE_SECONDS)
        for call in self.listeners.absent:
            call(name)

    def _tell_arrival(self, name: str) -> None:
        for call in self.listeners.arrived:
            call(name)

    # Calls

    async def prepare(self, name: str, claims: Sequence[ClaimIdentity]) -> PrepareAnswers:
        """Raise DriverNotRegistered, PluginCallFailed."""
        chosen = self._choose(name)
        call = chosen.peer.prepare(chosen.service, claims, limit=CALL_SECONDS)
        return await self._timed(chosen, "NodePrepareResources", call)

    async def unprepare(self, name: str, claims: Sequence[ClaimIdentity]) -> Mapping[str, str]:
        """Raise DriverNotRegistered, PluginCallFailed."""
        chosen = self._choose(name)
        call = chosen.peer.unprepare(chosen.service, claims, limit=CALL_SECONDS)
        return await self._timed(chosen, "NodeUnprepareResources", call)

    def _choose(self, name: str) -> RegisteredDriver:
        self.check_registered(name)
        return max(self._instances[name], key=lambda each: (each.peer.connected, each.number))

    async def _timed(self, instance: RegisteredDriver, method: str, call: Awaitable[T]) -> T:
        start, code = self._clock.monotonic(), "OK"
        try:
            return await call
        except PluginCallFailed as error:
            code = error.code
            raise
        finally:
            full = f"{FULL_NAMES[instance.service]}/{method}"
            if self._observe is not None:
                self._observe(instance.name, full, code, self._clock.monotonic() - start)


def choose_service(info: PluginInfo, endpoint: str) -> str:
    """The first service of the driver's list that the agent speaks."""
    for version in info.versions:
        if version in SERVICES:
            return version
    where = f"invalid supported gRPC versions of DRA driver plugin {info.name} at endpoint {endpoint}"
    if not info.versions:
        raise RegistrationRefused(f"{where}: empty list of supported gRPC services (aka supported versions)")
    theirs, ours = (" ".join(f'"{each}"' for each in names) for names in (info.versions, SERVICES))
    raise RegistrationRefused(
        f"{where}: none of services supported by the plugin ([{theirs}]) are supported by the kubelet ([{ours}])"
    )
