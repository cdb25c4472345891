"""PodResources v1 over a Unix socket.

In:  calls of monitoring agents.
Out: answers of the listing; a pod that is not there is gRPC Unknown, as a kubelet answers.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc
from grpc import aio

from drakit.nodeagent.podresources.resourcelist import PodResourceListing
from drakit.pluginapi import podresources_v1_pb2 as wire
from drakit.pluginapi import podresources_v1_pb2_grpc as stubs


class _Service(stubs.PodResourcesListerServicer):
    def __init__(self, listing: PodResourceListing) -> None:
        self._listing = listing

    async def List(  # noqa: N802 - the wire's word
        self,
        request: wire.ListPodResourcesRequest,  # noqa: ARG002
        context: aio.ServicerContext[Any, Any],  # noqa: ARG002
    ) -> wire.ListPodResourcesResponse:
        return wire.ListPodResourcesResponse(pod_resources=self._listing.all())

    async def Get(  # noqa: N802 - the wire's word
        self, request: wire.GetPodResourcesRequest, context: aio.ServicerContext[Any, Any]
    ) -> wire.GetPodResourcesResponse:
        name, namespace = request.pod_name, request.pod_namespace
        found = self._listing.one(name, namespace)
        if found is None:
            await context.abort(grpc.StatusCode.UNKNOWN, f"pod {name} in namespace {namespace} not found")
        return wire.GetPodResourcesResponse(pod_resources=found)

    async def GetAllocatableResources(  # noqa: N802 - the wire's word
        self,
        request: wire.AllocatableResourcesRequest,  # noqa: ARG002
        context: aio.ServicerContext[Any, Any],  # noqa: ARG002
    ) -> wire.AllocatableResourcesResponse:
        return self._listing.allocatable()


class PodResourcesServer:
    """Serves while its context is open; a socket that an earlier agent left is replaced."""

    def __init__(self, listing: PodResourceListing, socket: Path) -> None:
        self._listing = listing
        self._socket = socket
        self._server: aio.Server | None = None

    async def __aenter__(self) -> Self:
        self._socket.parent.mkdir(parents=True, exist_ok=True)
        self._socket.unlink(missing_ok=True)
        self._server = aio.server()
        stubs.add_PodResourcesListerServicer_to_server(_Service(self._listing), self._server)
        self._server.add_insecure_port(f"unix:{self._socket}")
        await self._server.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            await self._server.stop(None)
            self._server = None
