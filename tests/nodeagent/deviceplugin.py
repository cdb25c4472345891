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
    """A device plugin with two devices."""

    def __init__(self) -> None:
        self.allocated: list[list[str]] = []
        self.gone = asyncio.Event()

    async def ListAndWatch(self, request: Any, context: Any) -> AsyncIterator[Any]:  # noqa: ARG002
        devices = [device_wire.Device(ID=name, health="Healthy") for name in ("a", "b")]
        yield device_wire.ListAndWatchResponse(devices=devices)
        await self.gone.wait()

    async def GetDevicePluginOptions(self, request: Any, context: Any) -> Any:  # noqa: ARG002
        return device_wire.DevicePluginOptions()

    async def GetPreferredAllocation(self, request: Any, context: Any) -> Any:  # noqa: ARG002
        return device_wire.PreferredAllocationResponse()

    async def PreStartContainer(self, request: Any, context: Any) -> Any:  # noqa: ARG002
        return device_wire.PreStartContainerResponse()

    async def Allocate(self, request: Any, context: Any) -> Any:  # noqa: ARG002
        ids = list(request.container_requests[0].devices_ids)
        self.allocated.append(ids)
        response = device_wire.ContainerAllocateResponse(envs={"DEVICES": ",".join(ids)})
        return device_wire.AllocateResponse(container_responses=[response])


@asynccontextmanager
async def device_plugin(directory: Path, resource: str) -> AsyncIterator[TwoDevicePlugin]:
    plugin, server = TwoDevicePlugin(), aio.server()
    device_stubs.add_DevicePluginServicer_to_server(plugin, server)
    server.add_insecure_port(f"unix:{directory}/p.sock")
    await server.start()
    try:
        async with aio.insecure_channel(f"unix:{directory}/kubelet.sock") as channel:
            stub: Any = device_stubs.RegistrationStub(channel)
            await stub.Register(
                device_wire.RegisterRequest(version="v1beta1", endpoint="p.sock", resource_name=resource)
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
