"""A small DRA driver on real sockets, and one that can be told what to answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
from grpc import aio

from drakit.pluginapi import (
    dra_v1_pb2,
    dra_v1_pb2_grpc,
    health_v1alpha1_pb2,
    health_v1alpha1_pb2_grpc,
    registration_pb2,
    registration_pb2_grpc,
)

V1 = "v1.DRAPlugin"


class GrpcTestDriver(
    registration_pb2_grpc.RegistrationServicer,
    dra_v1_pb2_grpc.DRAPluginServicer,
    health_v1alpha1_pb2_grpc.DRAResourceHealthServicer,
):
    """Answers every claim with one device. `fail` makes the next calls fail with that text; calls wait for `go`."""

    def __init__(
        self,
        name: str,
        directory: Path,
        *,
        instance: str = "",
        versions: tuple[str, ...] = (V1,),
        options: Sequence[tuple[str, int]] = (),
    ) -> None:
        """`options` are those of the gRPC server that answers calls."""
        self.name = name
        self.options = options
        self.versions = versions
        self.endpoint = directory / "plugins" / name / f"dra{instance}.sock"
        self.registration = directory / "plugins_registry" / f"{name}{instance}-reg.sock"
        self.calls: list[tuple[str, list[str]]] = []
        self.notified: list[tuple[bool, str]] = []
        self.fail: list[str] = []
        self.go = asyncio.Event()
        self.go.set()
        self.registered = asyncio.Event()
        self.health: asyncio.Queue[Any] = asyncio.Queue()
        self.cdi_id: Callable[[Any], list[str]] = lambda claim: [f"{name}/dev={claim.name}"]
        self._servers: list[aio.Server] = []

    async def GetInfo(self, request: Any, context: Any) -> Any:  # noqa: ARG002
        return registration_pb2.PluginInfo(
            type="DRAPlugin", name=self.name, endpoint=str(self.endpoint), supported_versions=self.versions
        )

    async def NotifyRegistrationStatus(self, request: Any, context: Any) -> Any:  # noqa: ARG002
        self.notified.append((request.plugin_registered, request.error))
        self.registered.set()
        return registration_pb2.RegistrationStatusResponse()

    async def NodePrepareResources(self, request: Any, context: Any) -> Any:
        await self._called("prepare", request, context)
        devices = {
            claim.uid: [
                dra_v1_pb2.Device(pool_name="pool", device_name=f"dev-{claim.name}", cdi_device_ids=self.cdi_id(claim))
            ]
            for claim in request.claims
        }
        return dra_v1_pb2.NodePrepareResourcesResponse(
            claims={uid: dra_v1_pb2.NodePrepareResourceResponse(devices=each) for uid, each in devices.items()}
        )

    async def NodeUnprepareResources(self, request: Any, context: Any) -> Any:
        await self._called("unprepare", request, context)
        return dra_v1_pb2.NodeUnprepareResourcesResponse(
            claims={claim.uid: dra_v1_pb2.NodeUnprepareResourceResponse() for claim in request.claims}
        )

    async def NodeWatchResources(self, request: Any, context: Any) -> AsyncIterator[Any]:  # noqa: ARG002
        while True:
            yield await self.health.get()

    async def _called(self, what: str, request: Any, context: Any) -> None:
        self.calls.append((what, [claim.name for claim in request.claims]))
        await self.go.wait()
        if self.fail:
            await context.abort(grpc.StatusCode.UNAVAILABLE, self.fail.pop(0))

    def report(self, device: str, health: int, message: str = "") -> None:
        device_id = health_v1alpha1_pb2.DeviceIdentifier(pool_name="pool", device_name=device)
        report = health_v1alpha1_pb2.DeviceHealth(device=device_id, health=health, message=message)  # type: ignore[arg-type]
        self.health.put_nowait(health_v1alpha1_pb2.NodeWatchResourcesResponse(devices=[report]))

    async def start(self) -> None:
        for path in (self.endpoint, self.registration):
            path.parent.mkdir(parents=True, exist_ok=True)
        await self.start_service()
        server = aio.server()
        registration_pb2_grpc.add_RegistrationServicer_to_server(self, server)
        server.add_insecure_port(f"unix:{self.registration}")
        await server.start()
        self._servers.append(server)

    async def start_service(self) -> None:
        server = aio.server(options=self.options)
        dra_v1_pb2_grpc.add_DRAPluginServicer_to_server(self, server)
        health_v1alpha1_pb2_grpc.add_DRAResourceHealthServicer_to_server(self, server)
        server.add_insecure_port(f"unix:{self.endpoint}")
        await server.start()
        self._servers.append(server)

    async def stop(self) -> None:
        servers, self._servers = self._servers, []
        for server in servers:
            await server.stop(None)
        for path in (self.endpoint, self.registration):
            path.unlink(missing_ok=True)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[GrpcTestDriver]:
        await self.start()
        try:
            yield self
        finally:
            await self.stop()
