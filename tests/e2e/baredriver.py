"""A driver of bare gRPC, without the driver kit, as a process of its own until SIGTERM.

`python -m tests.e2e.baredriver ROOT NAME LOG [--idle MILLISECONDS] [--versions A,B] [--ill DEVICE] [--share ID]`:
sockets below ROOT, as the node has them. What it hears is in LOG, one JSON array per line: of registrations
(`notified`), calls (`prepare`) and health streams (`watched`). With `--ill` it has the health service and tells that
this device is overheated; `--share` is the share id of all its answers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from grpc import aio

from drakit.pluginapi import dra_v1_pb2_grpc, health_v1alpha1_pb2, health_v1alpha1_pb2_grpc
from tests.nodeagent.grpcdriver import V1, GrpcTestDriver


class BareDriver(GrpcTestDriver):
    """Without the health service by default: a stream that stays open would keep its connection from going idle."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        idle = (("grpc.max_connection_idle_ms", arguments.idle),) if arguments.idle else ()
        versions = tuple(each for each in arguments.versions.split(",") if each)
        super().__init__(arguments.name, arguments.root, versions=versions, options=idle)
        self._log, self._ill, self._share = arguments.log, arguments.ill, arguments.share

    def _note(self, *words: Any) -> None:
        with self._log.open("a") as file:
            file.write(json.dumps(words) + "\n")

    async def NotifyRegistrationStatus(self, request: Any, context: Any) -> Any:
        self._note("notified", request.plugin_registered, request.error)
        return await super().NotifyRegistrationStatus(request, context)

    async def _called(self, what: str, request: Any, context: Any) -> None:
        self._note(what, [claim.name for claim in request.claims])
        await super()._called(what, request, context)

    async def NodePrepareResources(self, request: Any, context: Any) -> Any:
        answer = await super().NodePrepareResources(request, context)
        for claim in answer.claims.values() if self._share else ():
            for device in claim.devices:
                device.share_id = self._share
        return answer

    async def NodeWatchResources(self, request: Any, context: Any) -> AsyncIterator[Any]:
        self._note("watched")
        self.report(self._ill, health_v1alpha1_pb2.UNHEALTHY, "overheated")
        async for each in super().NodeWatchResources(request, context):
            yield each

    async def start_service(self) -> None:
        server = aio.server(options=self.options)
        dra_v1_pb2_grpc.add_DRAPluginServicer_to_server(self, server)
        if self._ill:
            health_v1alpha1_pb2_grpc.add_DRAResourceHealthServicer_to_server(self, server)
        server.add_insecure_port(f"unix:{self.endpoint}")
        await server.start()
        self._servers.append(server)


async def serve(arguments: argparse.Namespace) -> None:
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    arguments.log.touch()
    driver = BareDriver(arguments)
    driver.cdi_id = lambda _: []
    async with driver.running():
        print("serving", flush=True)
        await stopped.wait()


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for name in ("root", "name", "log"):
        parser.add_argument(name, type=str if name == "name" else Path)
    parser.add_argument("--idle", type=int, default=0)
    parser.add_argument("--versions", default=V1)
    for name in ("--ill", "--share"):
        parser.add_argument(name, default="")
    return parser.parse_args()


if __name__ == "__main__":
    asyncio.run(serve(parsed()))
