"""The calls of the kubelet, in both versions of the protocol, and the stream of health.

In:  gRPC messages.
Out: the same calls of `ClaimCalls`, whichever version they came in; health as the driver reports it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Protocol

from grpc.aio import Server, ServicerContext

from drakit.base.clock import Clock
from drakit.driverkit.calls.answers import Answer
from drakit.driverkit.calls.lifecycle import ClaimCalls
from drakit.driverkit.claims import ClaimRef, answered_request
from drakit.driverkit.health import HealthBoard
from drakit.pluginapi import dra_v1_pb2 as v1
from drakit.pluginapi import dra_v1beta1_pb2 as v1beta1
from drakit.pluginapi import health_v1alpha1_pb2 as health
from drakit.pluginapi.dra_v1_pb2_grpc import DRAPluginServicer as V1Servicer
from drakit.pluginapi.dra_v1_pb2_grpc import add_DRAPluginServicer_to_server as add_v1
from drakit.pluginapi.dra_v1beta1_pb2_grpc import DRAPluginServicer as V1beta1Servicer
from drakit.pluginapi.dra_v1beta1_pb2_grpc import add_DRAPluginServicer_to_server as add_v1beta1
from drakit.pluginapi.health_v1alpha1_pb2_grpc import DRAResourceHealthServicer, add_DRAResourceHealthServicer_to_server

V1 = "v1.DRAPlugin"
V1BETA1 = "v1beta1.DRAPlugin"
HEALTH = "v1alpha1.DRAResourceHealth"
HEARTBEAT = 10.0
"""Seconds after which the state is sent again: a kubelet takes silence of 30 s for unknown."""


class _WireClaim(Protocol):
    namespace: str
    name: str
    uid: str


def refs_of(claims: Iterable[_WireClaim]) -> list[ClaimRef]:
    return [ClaimRef(namespace=each.namespace, name=each.name, uid=each.uid) for each in claims]


class PluginV1(V1Servicer):
    def __init__(self, calls: ClaimCalls) -> None:
        self._calls = calls

    async def NodePrepareResources(
        self, request: v1.NodePrepareResourcesRequest, context: ServicerContext[object, object]
    ) -> v1.NodePrepareResourcesResponse:
        answers = await self._calls.prepare(refs_of(request.claims))
        return v1.NodePrepareResourcesResponse(claims={uid: _v1(answer) for uid, answer in answers.items()})

    async def NodeUnprepareResources(
        self, request: v1.NodeUnprepareResourcesRequest, context: ServicerContext[object, object]
    ) -> v1.NodeUnprepareResourcesResponse:
        errors = await self._calls.unprepare(refs_of(request.claims))
        answers = {uid: v1.NodeUnprepareResourceResponse(error=error) for uid, error in errors.items()}
        return v1.NodeUnprepareResourcesResponse(claims=answers)


class PluginV1beta1(V1beta1Servicer):
    def __init__(self, calls: ClaimCalls) -> None:
        self._calls = calls

    async def NodePrepareResources(
        self, request: v1beta1.NodePrepareResourcesRequest, context: ServicerContext[object, object]
    ) -> v1beta1.NodePrepareResourcesResponse:
        answers = await self._calls.prepare(refs_of(request.claims))
        return v1beta1.NodePrepareResourcesResponse(claims={uid: _v1beta1(each) for uid, each in answers.items()})

    async def NodeUnprepareResources(
        self, request: v1beta1.NodeUnprepareResourcesRequest, context: ServicerContext[object, object]
    ) -> v1beta1.NodeUnprepareResourcesResponse:
        errors = await self._calls.unprepare(refs_of(request.claims))
        answers = {uid: v1beta1.NodeUnprepareResourceResponse(error=error) for uid, error in errors.items()}
        return v1beta1.NodeUnprepareResourcesResponse(claims=answers)


def _v1(answer: Answer) -> v1.NodePrepareResourceResponse:
    devices = [
        v1.Device(
            request_names=[answered_request(device)],
            pool_name=device.pool,
            device_name=device.device,
            cdi_device_ids=ids,
            share_id=device.share_id,
        )
        for device, ids in answer.devices
    ]
    return v1.NodePrepareResourceResponse(devices=devices, error=answer.error)


def _v1beta1(answer: Answer) -> v1beta1.NodePrepareResourceResponse:
    devices = [
        v1beta1.Device(
            request_names=[answered_request(device)],
            pool_name=device.pool,
            device_name=device.device,
            cdi_device_ids=ids,
        )
        for device, ids in answer.devices
    ]
    return v1beta1.NodePrepareResourceResponse(devices=devices, error=answer.error)


class HealthService(DRAResourceHealthServicer):
    def __init__(self, board: HealthBoard, clock: Clock) -> None:
        self._board = board
        self._clock = clock

    async def NodeWatchResources(
        self, request: health.NodeWatchResourcesRequest, context: ServicerContext[object, object]
    ) -> AsyncIterator[health.NodeWatchResourcesResponse]:
        """The state at once, after every change, and now and then."""
        while not self._board.closed:
            # Taken before the state is sent: a report that comes meanwhile sets this event, and is not missed.
            changed = self._board.changed
            if self._board.reports is not None:
                yield self._message()
            beat = asyncio.ensure_future(self._clock.sleep(HEARTBEAT))
            waiting = asyncio.ensure_future(changed.wait())
            try:
                await asyncio.wait((beat, waiting), return_when=asyncio.FIRST_COMPLETED)
            finally:
                beat.cancel()
                waiting.cancel()

    def _message(self) -> health.NodeWatchResourcesResponse:
        devices = [
            health.DeviceHealth(
                device=health.DeviceIdentifier(pool_name=report.pool, device_name=report.device),
                health=health.HealthStatus.ValueType(report.state.value),
                last_updated_time=int(self._board.reported_at.timestamp()),
                health_check_timeout_seconds=report.timeout,
                message=report.message,
            )
            for report in self._board.current()
        ]
        return health.NodeWatchResourcesResponse(devices=devices)


def add_services(server: Server, calls: ClaimCalls, board: HealthBoard | None, clock: Clock) -> None:
    add_v1(PluginV1(calls), server)
    add_v1beta1(PluginV1beta1(calls), server)
    if board is not None:
        add_DRAResourceHealthServicer_to_server(HealthService(board, clock), server)


def offered(board: HealthBoard | None) -> list[str]:
    """What a kubelet may choose from; it takes the first that it knows."""
    return [V1, V1BETA1, *([HEALTH] if board is not None else [])]
