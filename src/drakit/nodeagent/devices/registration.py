"""Device plugins register here, and tell which devices they have.

In:  Register calls on `kubelet.sock`; the ListAndWatch stream of each plugin.
Out: devices by resource, with their health. A plugin that leaves has none: its resource stays, with zero.

Names of resources are on disk: a plugin that left while the agent was away has left all the same, and a container that
has its devices does not start without them before it is back.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc
from grpc import aio

from drakit.base.quantity import Quantity
from drakit.nodeagent.files import Flush, write_atomically
from drakit.nodeagent.plugins.channels import channel_to
from drakit.pluginapi import deviceplugin_v1beta1_pb2 as wire
from drakit.pluginapi import deviceplugin_v1beta1_pb2_grpc as stubs

log = logging.getLogger("drakit.nodeagent")

VERSION = "v1beta1"
SOCKET = "kubelet.sock"
FILE = "device_plugin_resources"
HEALTHY = "Healthy"
DIAL_SECONDS = 10.0


@dataclass(slots=True)
class RegisteredDevicePlugin:
    """One plugin that is there. `devices` has the health of each by its id."""

    resource: str
    channel: aio.Channel
    devices: dict[str, str] = field(default_factory=dict)
    prefers: bool = False
    prepares: bool = False

    @property
    def stub(self) -> Any:
        return stubs.DevicePluginStub(self.channel)


class _Service(stubs.RegistrationServicer):
    def __init__(self, plugins: DevicePlugins) -> None:
        self._plugins = plugins

    async def Register(  # noqa: N802 - the wire's word
        self, request: wire.RegisterRequest, context: aio.ServicerContext[Any, Any]
    ) -> wire.Empty:
        if problem := _problem(request):
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, problem)
        self._plugins.begin(request)
        return wire.Empty()


def _problem(request: wire.RegisterRequest) -> str:
    if request.version != VERSION:
        return (
            f"requested API version {request.version!r} is not supported by kubelet. Supported version is {VERSION!r}"
        )
    domain, slash, name = request.resource_name.partition("/")
    if not (slash and name and "." in domain) or domain.endswith("kubernetes.io"):
        return f"the ResourceName {request.resource_name!r} is invalid"
    return ""


class DevicePlugins:
    """Serves while its context is open. Invariant: one plugin per resource; a later one takes its place."""

    def __init__(self, directory: Path, *, on_change: Callable[[], None], flush: Flush = os.fsync) -> None:
        self._directory = directory
        self._on_change = on_change
        self._flush = flush
        self._plugins: dict[str, RegisteredDevicePlugin] = {}
        self._seen = _load(directory / FILE)
        """Resources that have ever had a plugin here."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._server: aio.Server | None = None

    async def __aenter__(self) -> Self:
        self._directory.mkdir(parents=True, exist_ok=True)
        socket = self._directory / SOCKET
        socket.unlink(missing_ok=True)
        self._server = aio.server()
        stubs.add_RegistrationServicer_to_server(_Service(self), self._server)
        self._server.add_insecure_port(f"unix:{socket}")
        await self._server.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            await self._server.stop(None)
        tasks, self._tasks = list(self._tasks.values()), {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def begin(self, request: wire.RegisterRequest) -> None:
        """Follow a plugin that has registered, in place of an earlier one of the resource."""
        resource = request.resource_name
        if (earlier := self._tasks.pop(resource, None)) is not None:
            earlier.cancel()
        if resource not in self._seen:
            self._seen.add(resource)
            self._save()
        self._tasks[resource] = asyncio.create_task(self._follow(request), name=f"device plugin {resource}")

    def find(self, resource: str) -> RegisteredDevicePlugin | None:
        return self._plugins.get(resource)

    def knows(self, resource: str) -> bool:
        """Whether a plugin of that resource has ever been there."""
        return resource in self._seen

    def amounts(self) -> tuple[dict[str, Quantity], dict[str, Quantity]]:
        """Capacity (all devices) and allocatable (the healthy ones), by resource."""
        present = {name: plugin.devices for name, plugin in self._plugins.items()}
        capacity = {name: Quantity.of(len(present.get(name, ()))) for name in sorted(self._seen)}
        healthy = {name: Quantity.of(len(_healthy(present.get(name, {})))) for name in sorted(self._seen)}
        return capacity, healthy

    def healthy(self) -> dict[str, Sequence[str]]:
        return {name: _healthy(plugin.devices) for name, plugin in self._plugins.items()}

    def _save(self) -> None:
        try:
            data = json.dumps(sorted(self._seen), separators=(",", ":")).encode()
            write_atomically(self._directory / FILE, data, flush=self._flush)
        except OSError as error:  # the next agent does not know of a plugin that has left: no reason to refuse this one
            log.warning("%s is not written: %s", FILE, error)

    async def _follow(self, request: wire.RegisterRequest) -> None:
        channel = channel_to(str(self._directory / request.endpoint))
        plugin = RegisteredDevicePlugin(
            request.resource_name,
            channel,
            prefers=request.options.get_preferred_allocation_available,
            prepares=request.options.pre_start_required,
        )
        try:
            await asyncio.wait_for(channel.channel_ready(), DIAL_SECONDS)
            self._plugins[plugin.resource] = plugin
            async for message in plugin.stub.ListAndWatch(wire.Empty()):
                plugin.devices = {device.ID: device.health for device in message.devices}
                self._on_change()
        except (aio.AioRpcError, TimeoutError) as error:
            log.warning("device plugin %s is gone: %s", plugin.resource, error)
        finally:
            if self._plugins.get(plugin.resource) is plugin:
                del self._plugins[plugin.resource]
            await channel.close()
            self._on_change()


def _load(file: Path) -> set[str]:
    try:
        found = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return set()
    return {each for each in found if isinstance(each, str)} if isinstance(found, list) else set()


def _healthy(devices: Mapping[str, str]) -> list[str]:
    return sorted(name for name, health in devices.items() if health == HEALTHY)
