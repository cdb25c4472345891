"""Drivers that answer as they did in the recording, at the agent's gRPC seam.

In:  the recorded calls of a driver, in order.
Out: their answers, after the time that they took; a log of what the agent asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from drakit.base.clock import FakeClock
from drakit.nodeagent.plugins.contract import (
    ClaimIdentity,
    DeviceAnswer,
    DeviceHealthReport,
    PluginCallFailed,
    PluginInfo,
    PrepareAnswer,
    PrepareAnswers,
)
from tests.conformance.nodeflows.names import Uids

Plain = dict[str, Any]
_LEAST = 0.001
"""Seconds that every answer takes: who calls in the same moment has called before the first answer."""
_TOO_LATE = 3.0
_DIALOGUE = ("GetInfo", "NotifyRegistrationStatus")
_HEALTH = {"HEALTHY": "Healthy", "UNHEALTHY": "Unhealthy"}


@dataclass(slots=True)
class Call:
    """A call of the agent, in the words of the recording."""

    method: str
    driver: str
    instance: str
    request: Any = None
    service: str = ""
    deadline: float = 0.0


def go_code(name: str) -> str:
    if name == "CANCELLED":
        return "Canceled"
    return "".join(part.capitalize() for part in name.split("_"))


class ScriptedDriver:
    """One instance of a driver: a registration socket, a service socket, and the recorded answers."""

    def __init__(self, name: str, instance: str, about: Plain, script: Sequence[Plain], stage: DriverStage) -> None:
        self.name = name
        self.instance = instance
        self.endpoint: str = about.get("endpoint") or ""
        self.registration: str = about["registration_socket"]
        self.health: bool = bool(about.get("health_service"))
        self.versions = list(about.get("versions") or ("v1.DRAPlugin",))
        self.type: str = about.get("type") or "DRAPlugin"
        self.serving = False
        self.stale = False
        """The socket file is there, and nobody listens."""
        self._script = list(script)
        self._asked: dict[str, int] = {}
        self._stage = stage
        self.peers: list[ScriptedPeer] = []
        self.streams: list[asyncio.Queue[Any]] = []
        self.calls_under_way: set[asyncio.Future[None]] = set()

    def next_row(self, method: str) -> Plain | None:
        """The next recorded call of that method; after the last one, that one again."""
        rows = [row for row in self._script if row["method"] == method]
        index = self._asked[method] = self._asked.get(method, -1) + 1
        if not rows:
            return None
        return rows[min(index, len(rows) - 1)]

    def is_unheard(self, row: Plain) -> bool:
        """Whether GetInfo was answered well and nothing came of it: the answer came too late."""
        if "grpc" in (row.get("answer") or {}) or "answered_after_s" in row:
            return False
        place = next(index for index, each in enumerate(self._script) if each is row)
        later = (each["method"] for each in self._script[place + 1 :])
        return next((each for each in later if each in _DIALOGUE), "GetInfo") == "GetInfo"

    def log(self, method: str, **about: Any) -> None:
        self._stage.log(Call(method, self.name, self.instance, **about))

    # What happens to it

    def start_service(self) -> None:
        self.serving, self.stale = True, False
        self._tell()

    def stop_service(self, *, stale: bool = False) -> None:
        self.serving, self.stale = False, stale
        for call in list(self.calls_under_way):
            if not call.done():
                call.set_exception(PluginCallFailed("Unavailable", "Cancelling all calls"))
        for stream in self.streams:
            stream.put_nowait(PluginCallFailed("Unavailable", "Cancelling all calls"))
        self._tell()

    def _tell(self) -> None:
        for peer in self.peers:
            peer.told()

    def send(self, reports: Sequence[Plain]) -> None:
        for stream in self.streams:
            stream.put_nowait(
                [
                    DeviceHealthReport(
                        each["pool"],
                        each["device"],
                        _HEALTH.get(each["health"], "Unknown"),
                        each.get("message", ""),
                        each.get("timeout", 0),
                    )
                    for each in reports
                ]
            )

    def end_streams(self, error: PluginCallFailed | None) -> None:
        for stream in self.streams:
            stream.put_nowait(error)

    async def answer(self, row: Plain | None, limit: float, *, late: bool = False) -> Any:
        """Wait as long as the recorded driver did; raise what it raised."""
        uids = self._stage.uids
        answer = uids.real((row or {}).get("answer") or {})
        taken = float((row or {}).get("answered_after_s") or (_TOO_LATE if late else 0.0))
        if (row or {}).get("client_cancelled_after_s"):
            taken = max(taken, limit + 0.1)
        await self._wait(max(taken, _LEAST), limit)
        if "grpc" in answer:
            raise PluginCallFailed(go_code(answer["grpc"]), answer.get("message", ""))
        return answer

    async def _wait(self, seconds: float, limit: float) -> None:
        broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.calls_under_way.add(broken)
        alarm = asyncio.ensure_future(self._stage.clock.sleep(min(seconds, limit)))
        try:
            await asyncio.wait((alarm, broken), return_when=asyncio.FIRST_COMPLETED)
            if broken.done():
                broken.result()
            if seconds > limit:
                raise PluginCallFailed("DeadlineExceeded", "context deadline exceeded")
        finally:
            self.calls_under_way.discard(broken)
            alarm.cancel()
            broken.cancel()
            await asyncio.gather(alarm, broken, return_exceptions=True)


@dataclass(slots=True)
class DriverStage:
    """What scripted drivers share."""

    clock: FakeClock
    uids: Uids
    log: Callable[[Call], None]
    drivers: list[ScriptedDriver] = field(default_factory=list)


class ScriptedRegistration:
    def __init__(self, driver: ScriptedDriver | None, path: str) -> None:
        self._driver = driver
        self._path = path

    async def get_info(self) -> PluginInfo:
        driver = self._driver
        if driver is None:
            cause = "connect: connection refused"
            dial = f'connection error: desc = "transport: Error while dialing: dial unix {self._path}: {cause}"'
            raise PluginCallFailed("Unavailable", dial)
        row = driver.next_row("GetInfo")
        driver.log("GetInfo")
        answer = await driver.answer(row, 1e9, late=row is not None and driver.is_unheard(row)) if row else {}
        return PluginInfo(
            answer.get("type", driver.type),
            answer.get("name", driver.name),
            answer.get("endpoint", "" if row else driver.endpoint),
            tuple(answer.get("supported_versions", () if row else driver.versions)),
        )

    async def notify(self, *, registered: bool, error: str) -> None:
        if self._driver is not None:
            self._driver.log("NotifyRegistrationStatus", request={"plugin_registered": registered, "error": error})

    async def close(self) -> None:
        return


class ScriptedPeer:
    def __init__(self, stage: DriverStage, endpoint: str) -> None:
        self._stage = stage
        self._endpoint = endpoint
        self._listeners: list[Callable[[], None]] = []
        self._connected = self.connected
        self._closed = False
        for driver in stage.drivers:
            driver.peers.append(self)

    @property
    def connected(self) -> bool:
        driver = self._server()
        return driver is not None and (driver.serving or self._endpoint == driver.registration)

    def on_change(self, call: Callable[[], None]) -> None:
        self._listeners.append(call)

    def told(self) -> None:
        if not self._closed and self.connected != self._connected:
            self._connected = self.connected
            for call in self._listeners:
                call()

    async def prepare(self, service: str, claims: Sequence[ClaimIdentity], *, limit: float) -> PrepareAnswers:
        answer = await self._call("NodePrepareResources", service, claims, limit)
        return {
            uid: PrepareAnswer(tuple(_device(d) for d in each.get("devices", ())), each.get("error", ""))
            for uid, each in answer.get("claims", {}).items()
        }

    async def unprepare(self, service: str, claims: Sequence[ClaimIdentity], *, limit: float) -> Mapping[str, str]:
        answer = await self._call("NodeUnprepareResources", service, claims, limit)
        return {uid: each.get("error", "") for uid, each in answer.get("claims", {}).items()}

    async def watch_health(self) -> AsyncIterator[Sequence[DeviceHealthReport]]:
        driver = self._reach()
        if self._endpoint == driver.registration:  # only the registration service is there
            raise PluginCallFailed("Unimplemented", "Method not found!")
        driver.log("NodeWatchResources", service="/v1alpha1.DRAResourceHealth/NodeWatchResources")
        if not driver.health:
            raise PluginCallFailed("Unimplemented", "Method not found!")
        stream: asyncio.Queue[Any] = asyncio.Queue()
        driver.streams.append(stream)
        ended = False
        try:
            while (message := await stream.get()) is not None:
                if isinstance(message, PluginCallFailed):
                    ended = True
                    raise message
                yield message
            ended = True
        finally:
            driver.streams.remove(stream)
            if not ended:
                driver.log("NodeWatchResources.closed-by-kubelet")

    async def close(self) -> None:
        self._closed = True

    async def _call(self, method: str, service: str, claims: Sequence[ClaimIdentity], limit: float) -> Plain:
        driver = self._reach()
        if self._endpoint == driver.registration:  # only the registration service is there
            raise PluginCallFailed("Unimplemented", "Method not found!")
        row = driver.next_row(method)
        request = {"claims": [{"namespace": c.namespace, "uid": c.uid, "name": c.name} for c in claims]}
        driver.log(method, request=request, service=service.partition(".")[0], deadline=limit)
        answer: Plain = await driver.answer(row, limit)
        return answer

    def _reach(self) -> ScriptedDriver:
        driver = self._server()
        if driver is not None and (driver.serving or self._endpoint == driver.registration):
            return driver
        cause = "connection refused" if driver is not None and driver.stale else "no such file or directory"
        detail = (
            f'connection error: desc = "transport: Error while dialing: dial unix {self._endpoint}: connect: {cause}"'
        )
        raise PluginCallFailed("Unavailable", detail)

    def _server(self) -> ScriptedDriver | None:
        for driver in reversed(self._stage.drivers):
            if self._endpoint in (driver.endpoint, driver.registration):
                return driver
        return None


class ScriptedDialer:
    def __init__(self, stage: DriverStage, directory: ScriptedDirectory) -> None:
        self._stage = stage
        self._directory = directory

    def registration(self, path: str) -> ScriptedRegistration:
        return ScriptedRegistration(self._directory.listening.get(path), path)

    def driver(self, endpoint: str) -> ScriptedPeer:
        return ScriptedPeer(self._stage, endpoint)


class ScriptedDirectory:
    """The plugin registry, without a file system."""

    def __init__(self) -> None:
        self.listening: dict[str, ScriptedDriver] = {}
        self._stamps: dict[str, tuple[int, int]] = {}
        self._changes = 0
        self._word = asyncio.Event()

    def put(self, path: str, driver: ScriptedDriver | None) -> None:
        """A socket appears; without a driver, nobody listens on it."""
        self._changes += 1
        self._stamps[path] = (self._changes, 0)
        if driver is None:
            self.listening.pop(path, None)
        else:
            self.listening[path] = driver
        self._word.set()

    def remove(self, path: str) -> None:
        self._stamps.pop(path, None)
        self.listening.pop(path, None)
        self._word.set()

    def sockets(self) -> Mapping[str, tuple[int, int]]:
        return {path: stamp for path, stamp in self._stamps.items() if not path.rpartition("/")[2].startswith(".")}

    async def changed(self) -> None:
        await self._word.wait()
        self._word.clear()


def _device(device: Plain) -> DeviceAnswer:
    return DeviceAnswer(
        device.get("pool_name", ""),
        device.get("device_name", ""),
        tuple(device.get("request_names", ())),
        tuple(device.get("cdi_device_ids", ())),
        device.get("share_id"),
    )
