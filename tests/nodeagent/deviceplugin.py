"""A device plugin (v1beta1) on real sockets.

As a process of its own until SIGTERM: `python -m tests.nodeagent.deviceplugin DIRECTORY RESOURCE`.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from grpc import aio

from drakit.pluginapi import deviceplugin_v1beta1_pb2 as device_wire
from drakit.pluginapi import deviceplugin_v1beta1_pb2_grpc as device_stubs


class TwoDevicePlugin(device_stubs.DevicePluginServicer):
    """A device plugin with two devices, which prefers the last ones. It answers that after `go`."""

    def __init__(self) -> None:
        self.allocated: list[list[str]] = []
        self.calls: list[str] = []
        self.go = asyncio.Event()
        self.go.set()
        self.gone = asyncio.Event()

    async def ListAndWatch(self, request: Any, context: Any) -> AsyncIterator[Any]:  # noqa: ARG002
        devices = [device_wire.Device(ID=name, health="Healthy") for name in ("a", "b")]
        yield device_wire.ListAndWatchResponse(devices=devices)
        await self.gone.wait()

    async def GetDevicePluginOptions(self, request: Any, context: Any) -> Any:  # noqa: ARG002
        return device_wire.DevicePluginOptions()

    async def GetPreferredAllocation(self, request: Any, context: Any) -> Any:  # noqa: ARG002
        self.calls.append("prefer")
        await self.go.wait()
        asked = request.container_requests[0]
        ids = sorted(asked.available_deviceIDs)[-asked.allocation_size :]
        chosen = device_wire.ContainerPreferredAllocationResponse(deviceIDs=ids)
        return device_wire.PreferredAllocationResponse(container_responses=[chosen])

    async def PreStartContainer(self, request: Any, context: Any) -> Any:  # noqa: ARG002
        self.calls.append("pre-start")
        return device_wire.PreStartContainerResponse()

    async def Allocate(self, request: Any, context: Any) -> Any:  # noqa: ARG002
        ids = list(request.container_requests[0].devices_ids)
        self.allocated.append(ids)
        self.calls.append("allocate")
        response = device_wire.ContainerAllocateResponse(envs={"DEVICES": ",".join(ids)})
        return device_wire.AllocateResponse(container_responses=[response])


@asynccontextmanager
async def device_plugin(directory: Path, resource: str, **options: bool) -> AsyncIterator[TwoDevicePlugin]:
    """`options` are those of its registration."""
    about = device_wire.DevicePluginOptions(**options)
    plugin, server = TwoDevicePlugin(), aio.server()
    device_stubs.add_DevicePluginServicer_to_server(plugin, server)
    server.add_insecure_port(f"unix:{directory}/p.sock")
    await server.start()
    try:
        async with aio.insecure_channel(f"unix:{directory}/kubelet.sock") as channel:
            stub: Any = device_stubs.RegistrationStub(channel)
            await stub.Register(
                device_wire.RegisterRequest(version="v1beta1", endpoint="p.sock", resource_name=resource, options=about)
            )
        yield plugin
    finally:
        plugin.gone.set()
        await server.stop(None)


async def serve(directory: Path, resource: str) -> None:
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    async with device_plugin(directory, resource):
        print("registered", flush=True)
        await stopped.wait()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), sys.argv[2]))
