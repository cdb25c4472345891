"""Whether the driver answers: ask its own sockets, as a kubelet would.

In:  the two sockets.
Out: nothing, or Unavailable that says which socket does not answer and why.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc.aio

from drakit.base.errors import Unavailable
from drakit.driverkit.serving.paths import PluginPaths
from drakit.pluginapi import dra_v1_pb2, registration_pb2
from drakit.pluginapi.dra_v1_pb2_grpc import DRAPluginStub
from drakit.pluginapi.registration_pb2_grpc import RegistrationStub

TIMEOUT = 5.0


async def check_sockets(paths: PluginPaths, *, within: float = TIMEOUT) -> None:
    """Ask who is there, and to prepare nothing. Raise Unavailable."""
    async with _reached(paths.registration) as channel:
        await RegistrationStub(channel).GetInfo(registration_pb2.InfoRequest(), timeout=within)
    async with _reached(paths.service) as channel:
        await DRAPluginStub(channel).NodePrepareResources(dra_v1_pb2.NodePrepareResourcesRequest(), timeout=within)


@asynccontextmanager
async def _reached(path: Path) -> AsyncIterator[grpc.aio.Channel]:
    try:
        async with grpc.aio.insecure_channel(f"unix://{path}") as channel:
            yield channel
    except grpc.aio.AioRpcError as error:
        raise Unavailable(f"{path} does not answer: {error.details()}") from error
