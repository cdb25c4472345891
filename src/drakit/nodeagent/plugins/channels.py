"""Plugins over gRPC on Unix sockets.

In:  paths of sockets.
Out: peers whose failures carry the words of a Go client, which is what people search for.

A socket that cannot be connected to fails a call at once, with the cause, also when the connection broke in the moment
before; as soon as it can be, the call goes through: nobody waits long for gRPC's own reconnect backoff. A call that the
driver has got is never cut short: during a graceful stop it may still answer, on a connection that is leaving.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import grpc
from grpc import aio

from drakit.nodeagent.plugins.contract import (
    V1,
    V1BETA1,
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

T = TypeVar("T")
_MESSAGES: Mapping[str, Any] = {V1: dra_v1_pb2, V1BETA1: dra_v1beta1_pb2}
_STUBS: Mapping[str, Any] = {V1: dra_v1_pb2_grpc.DRAPluginStub, V1BETA1: dra_v1beta1_pb2_grpc.DRAPluginStub}
_OPTIONS = (
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.max_receive_message_length", 16 << 20),
)
_REGISTRATION_SECONDS = 10.0
_LOOK_SECONDS = 0.2
"""Between looks at a socket that answers while its channel is not ready yet."""
_NEVER_SENT = "failed to connect to all addresses"
_BROKEN_PIPE = "(sendmsg: Broken pipe (32))"
_CLOSING = "grpc: the client connection is closing"
_TOO_LATE = "context deadline exceeded"


def go_code(code: grpc.StatusCode) -> str:
    """`DEADLINE_EXCEEDED` as Go writes it: `DeadlineExceeded`; OK stays OK."""
    if code is grpc.StatusCode.OK:
        return "OK"
    name = "".join(part.capitalize() for part in code.name.split("_"))
    return {"Cancelled": "Canceled"}.get(name, name)


async def translated(method: Callable[..., Awaitable[T]], request: Any, **options: Any) -> T:
    """Call a method of a plugin. Raise PluginCallFailed, also when the channel is closed under the call."""
    try:
        return await method(request, **options)
    except aio.AioRpcError as error:
        raise _failure(error) from None
    except aio.UsageError:
        raise PluginCallFailed("Canceled", _CLOSING) from None
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        # Nobody cancels this task: the plugin went away, its channel was closed, and gRPC cancels the call. Whoever
        # made it must hear of a failure, or would end as if cancelled.
        raise PluginCallFailed("Canceled", _CLOSING) from None


def _failure(error: aio.AioRpcError) -> PluginCallFailed:
    code, detail = go_code(error.code()), error.details() or ""
    return PluginCallFailed(code, _TOO_LATE if code == "DeadlineExceeded" else detail)


def channel_to(path: str) -> aio.Channel:
    return aio.insecure_channel(f"unix:{path}", options=_OPTIONS)


async def check_reachable(path: str) -> None:
    """Connect once, so that a failure has the words that a Go client would use."""
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        probe.setblocking(False)
        await asyncio.get_running_loop().sock_connect(probe, path)
    except OSError as error:
        cause = os.strerror(error.errno).lower() if error.errno else str(error)
        detail = f'connection error: desc = "transport: Error while dialing: dial unix {path}: connect: {cause}"'
        raise PluginCallFailed("Unavailable", detail) from None
    finally:
        probe.close()


class GrpcRegistration:
    """One dialogue with a plugin's registration socket."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._channel = channel_to(path)
        self._stub: Any = registration_pb2_grpc.RegistrationStub(self._channel)

    async def get_info(self) -> PluginInfo:
        await check_reachable(self._path)
        info = await translated(self._stub.GetInfo, registration_pb2.InfoRequest(), timeout=_REGISTRATION_SECONDS)
        return PluginInfo(info.type, info.name, info.endpoint, tuple(info.supported_versions))

    async def notify(self, *, registered: bool, error: str) -> None:
        status = registration_pb2.RegistrationStatus(plugin_registered=registered, error=error)
        await translated(self._stub.NotifyRegistrationStatus, status, timeout=_REGISTRATION_SECONDS)

    async def close(self) -> None:
        await self._channel.close()


class GrpcDriver:
    """A driver's service socket; one channel, watched as long as the peer is open."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._channel = channel_to(endpoint)
        self._connected = self._closed = False
        self._ready = asyncio.Event()
        """Set while connected."""
        self._listeners: list[Callable[[], None]] = []
        self._watcher = asyncio.create_task(self._watch(), name=f"connection to {endpoint}")

    @property
    def connected(self) -> bool:
        return self._connected

    def on_change(self, call: Callable[[], None]) -> None:
        self._listeners.append(call)

    async def prepare(self, service: str, claims: Sequence[ClaimIdentity], *, limit: float) -> PrepareAnswers:
        messages = _MESSAGES[service]
        request = messages.NodePrepareResourcesRequest(claims=_claims(messages, claims))
        answer = await self._call(service, "NodePrepareResources", request, limit)
        return {uid: _prepared(each) for uid, each in answer.claims.items()}

    async def unprepare(self, service: str, claims: Sequence[ClaimIdentity], *, limit: float) -> Mapping[str, str]:
        messages = _MESSAGES[service]
        request = messages.NodeUnprepareResourcesRequest(claims=_claims(messages, claims))
        answer = await self._call(service, "NodeUnprepareResources", request, limit)
        return {uid: each.error for uid, each in answer.claims.items()}

    async def watch_health(self) -> AsyncIterator[Sequence[DeviceHealthReport]]:
        await check_reachable(self._endpoint)
        stub: Any = health_v1alpha1_pb2_grpc.DRAResourceHealthStub(self._channel)
        stream = stub.NodeWatchResources(health_v1alpha1_pb2.NodeWatchResourcesRequest(), wait_for_ready=True)
        try:
            async for message in stream:
                yield [_report(each) for each in message.devices]
        except aio.AioRpcError as error:
            raise _failure(error) from None
        finally:
            stream.cancel()

    async def close(self) -> None:
        self._closed = True
        self._watcher.cancel()
        await asyncio.gather(self._watcher, return_exceptions=True)
        await self._channel.close()
        self._become(False)

    async def _call(self, service: str, method: str, request: Any, limit: float) -> Any:
        end = asyncio.get_running_loop().time() + limit
        stub, repeated = _STUBS[service](self._channel), False
        while (left := end - asyncio.get_running_loop().time()) > 0:
            try:
                async with asyncio.timeout(left):
                    await self._until_connected()
            except TimeoutError:
                break
            try:
                # What is left after the wait: the driver must not take longer than its caller has.
                left = end - asyncio.get_running_loop().time()
                return await translated(getattr(stub, method), request, timeout=left)
            except PluginCallFailed as failure:
                # A broken pipe counts once: a driver may tell of its own, and would be called for ever.
                broken_pipe = failure.detail.endswith(_BROKEN_PIPE) and not repeated
                if not (broken_pipe or self._was_never_sent(failure)):
                    raise
                # The connection broke in this moment, and the driver has not heard of the call.
                repeated = True
                await check_reachable(self._endpoint)
                await asyncio.sleep(_LOOK_SECONDS)
        raise PluginCallFailed("DeadlineExceeded", _TOO_LATE)

    async def _until_connected(self) -> None:
        """Raise PluginCallFailed as soon as nobody listens at the socket. A closed peer is for the call to tell."""
        while not self._connected and not self._closed:
            await check_reachable(self._endpoint)
            # The socket answers, so the channel is about to be ready again; or the driver went once more.
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ready.wait(), _LOOK_SECONDS)

    def _was_never_sent(self, failure: PluginCallFailed) -> bool:
        """Whether gRPC itself has failed, on the way to this socket; a driver may use the same words of another."""
        return failure.detail.startswith(_NEVER_SENT) and self._endpoint in failure.detail

    async def _watch(self) -> None:
        while True:
            state = self._channel.get_state(try_to_connect=True)
            self._become(state is grpc.ChannelConnectivity.READY)
            await self._channel.wait_for_state_change(state)

    def _become(self, connected: bool) -> None:
        if connected != self._connected:
            self._connected = connected
            (self._ready.set if connected else self._ready.clear)()
            for call in self._listeners:
                call()


class GrpcDialer:
    def registration(self, path: str) -> RegistrationPeer:
        return GrpcRegistration(path)

    def driver(self, endpoint: str) -> DriverPeer:
        return GrpcDriver(endpoint)


def _claims(messages: Any, claims: Sequence[ClaimIdentity]) -> list[Any]:
    return [messages.Claim(namespace=each.namespace, uid=each.uid, name=each.name) for each in claims]


def _prepared(answer: Any) -> PrepareAnswer:
    return PrepareAnswer(tuple(_device(each) for each in answer.devices), answer.error)


def _device(device: Any) -> DeviceAnswer:
    share = None
    with suppress(ValueError):  # v1beta1 has no such field
        share = device.share_id if device.HasField("share_id") else None
    return DeviceAnswer(
        device.pool_name, device.device_name, tuple(device.request_names), tuple(device.cdi_device_ids), share
    )


def _report(each: Any) -> DeviceHealthReport:
    health = {1: "Healthy", 2: "Unhealthy"}.get(each.health, "Unknown")
    return DeviceHealthReport(
        each.device.pool_name, each.device.device_name, health, each.message, each.health_check_timeout_seconds
    )
