"""The kubelet's side of the plugin sockets.

In:  a registry directory in which a driver makes its registration socket.
Out: registrations, and connections over which a driver is asked to prepare, to unprepare and to tell health.

Every connection dials anew: gRPC would otherwise share the backoff of an address that was away a moment ago.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NoReturn

import msgspec
from grpc import aio

from drakit.api import ResourceClaim
from drakit.base.clock import Clock
from drakit.pluginapi import (
    dra_v1_pb2,
    dra_v1_pb2_grpc,
    dra_v1beta1_pb2,
    dra_v1beta1_pb2_grpc,
    health_v1alpha1_pb2,
    health_v1alpha1_pb2_grpc,
    registration_pb2,
    registration_pb2_grpc,
)

V1 = "v1.DRAPlugin"
V1BETA1 = "v1beta1.DRAPlugin"
HEALTH = "v1alpha1.DRAResourceHealth"
PLUGIN_TYPE = "DRAPlugin"
INFO_SECONDS = 1.0
"""A kubelet takes no answer to GetInfo that comes later."""
NOTIFY_SECONDS = 5.0
"""The same for NotifyRegistrationStatus."""
_POLL_SECONDS = 0.05
_SERVICES: dict[str, tuple[Any, Any]] = {
    V1: (dra_v1_pb2, dra_v1_pb2_grpc.DRAPluginStub),
    V1BETA1: (dra_v1beta1_pb2, dra_v1beta1_pb2_grpc.DRAPluginStub),
}
# Without its own pool a channel would inherit the backoff of an earlier one to the same path.
_OPTIONS = (("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0))


class DriverCallFailed(Exception):
    """A gRPC call that ended with a code instead of an answer."""

    def __init__(self, method: str, code: str, details: str) -> None:
        self.code = code
        super().__init__(f"{method} ended with gRPC code {code}: {details}")


class ClaimKey(msgspec.Struct, frozen=True):
    """What a kubelet tells a driver of a claim."""

    namespace: str
    name: str
    uid: str

    @staticmethod
    def of(claim: ResourceClaim) -> ClaimKey:
        return ClaimKey(claim.metadata.namespace, claim.metadata.name, claim.metadata.uid)


class AnsweredDevice(msgspec.Struct, frozen=True, order=True):
    pool: str
    device: str
    requests: tuple[str, ...]
    cdi_ids: tuple[str, ...]
    share_id: str | None


class ClaimAnswer(msgspec.Struct, frozen=True):
    """What a driver says about one claim."""

    devices: tuple[AnsweredDevice, ...] = ()
    error: str = ""


class RegisteredPlugin(msgspec.Struct, frozen=True):
    """What stands at a registration socket."""

    socket: Path
    type: str
    name: str
    endpoint: str
    versions: tuple[str, ...]

    @property
    def service_socket(self) -> Path:
        """An empty endpoint means the registration socket itself."""
        return Path(self.endpoint) if self.endpoint else self.socket

    @property
    def services(self) -> tuple[str, ...]:
        """The versions that a kubelet could use, in the driver's order: the first is the one that it takes."""
        return tuple(each for each in self.versions if each in _SERVICES)


class RegistryWatch:
    """Finds drivers in a registry directory, as a kubelet would."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._directory = directory
        self._clock = clock

    async def wait(self, seconds: float, *, exclude: Iterable[Path] = ()) -> RegisteredPlugin | str:
        """The first plugin that answers, other than those at `exclude`; or why there is none."""
        deadline = self._clock.monotonic() + seconds
        reason = "there is no socket in the registry directory"
        left_out = frozenset(exclude)
        while True:
            for path in self._sockets() - left_out:
                try:
                    return await get_info(path)
                except DriverCallFailed as error:
                    reason = f"{path.name}: {error}"
            if self._clock.monotonic() >= deadline:
                return reason
            await self._clock.sleep(_POLL_SECONDS)

    def _sockets(self) -> frozenset[Path]:
        """Any name counts, in sub-directories too, but none that starts with a dot."""
        try:
            found = [each for each in self._directory.rglob("*") if each.is_socket()]
        except OSError:  # a directory that went away while it was read
            return frozenset()
        return frozenset(each for each in found if not each.name.startswith("."))


async def get_info(socket: Path) -> RegisteredPlugin:
    async with _channel(socket) as channel:
        stub = registration_pb2_grpc.RegistrationStub(channel)
        try:
            info = await stub.GetInfo(registration_pb2.InfoRequest(), timeout=INFO_SECONDS)
        except aio.AioRpcError as error:
            _fail("GetInfo", error)
    return RegisteredPlugin(socket, info.type, info.name, info.endpoint, tuple(info.supported_versions))


async def notify(plugin: RegisteredPlugin, *, error: str = "") -> None:
    """Tell the driver how its registration went."""
    status = registration_pb2.RegistrationStatus(plugin_registered=not error, error=error)
    async with _channel(plugin.socket) as channel:
        stub = registration_pb2_grpc.RegistrationStub(channel)
        try:
            await stub.NotifyRegistrationStatus(status, timeout=NOTIFY_SECONDS)
        except aio.AioRpcError as failure:
            _fail("NotifyRegistrationStatus", failure)


class PluginConnection:
    """Calls to one driver in one version of the service."""

    def __init__(self, socket: Path, service: str, seconds: float) -> None:
        self._channel = aio.insecure_channel(f"unix:{socket}", options=_OPTIONS)
        self._messages, stub = _SERVICES[service]
        self._stub: Any = stub(self._channel)
        self._health = health_v1alpha1_pb2_grpc.DRAResourceHealthStub(self._channel)
        self._seconds = seconds

    async def close(self) -> None:
        await self._channel.close()

    async def prepare(self, *claims: ClaimKey, seconds: float | None = None) -> dict[str, ClaimAnswer]:
        request = self._messages.NodePrepareResourcesRequest(claims=map(self._claim, claims))
        try:
            answer = await self._stub.NodePrepareResources(request, timeout=seconds or self._seconds)
        except aio.AioRpcError as error:
            _fail("NodePrepareResources", error)
        return {uid: _claim_answer(each) for uid, each in answer.claims.items()}

    async def unprepare(self, *claims: ClaimKey) -> dict[str, str]:
        """The error per claim; empty for success."""
        request = self._messages.NodeUnprepareResourcesRequest(claims=map(self._claim, claims))
        try:
            answer = await self._stub.NodeUnprepareResources(request, timeout=self._seconds)
        except aio.AioRpcError as error:
            _fail("NodeUnprepareResources", error)
        return {uid: each.error for uid, each in answer.claims.items()}

    async def watch_health(self) -> AsyncGenerator[health_v1alpha1_pb2.NodeWatchResourcesResponse, None]:
        call = self._health.NodeWatchResources(health_v1alpha1_pb2.NodeWatchResourcesRequest())
        try:
            async for message in call:
                yield message
        except aio.AioRpcError as error:
            _fail("NodeWatchResources", error)
        finally:
            call.cancel()

    def _claim(self, key: ClaimKey) -> Any:
        return self._messages.Claim(namespace=key.namespace, uid=key.uid, name=key.name)


@asynccontextmanager
async def connected(plugin: RegisteredPlugin, service: str, seconds: float) -> AsyncIterator[PluginConnection]:
    connection = PluginConnection(plugin.service_socket, service, seconds)
    try:
        yield connection
    finally:
        await connection.close()


def _claim_answer(answer: Any) -> ClaimAnswer:
    return ClaimAnswer(tuple(map(_answered_device, answer.devices)), answer.error)


def _answered_device(device: Any) -> AnsweredDevice:
    # v1beta1 has no such field, and HasField raises for a field that is unknown.
    shared = "share_id" in device.DESCRIPTOR.fields_by_name and device.HasField("share_id")
    return AnsweredDevice(
        device.pool_name,
        device.device_name,
        tuple(device.request_names),
        tuple(device.cdi_device_ids),
        device.share_id if shared else None,
    )


@asynccontextmanager
async def _channel(socket: Path) -> AsyncIterator[aio.Channel]:
    async with aio.insecure_channel(f"unix:{socket}", options=_OPTIONS) as channel:
        yield channel


def _fail(method: str, error: aio.AioRpcError) -> NoReturn:
    raise DriverCallFailed(method, error.code().name, error.details() or "") from None
