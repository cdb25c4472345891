"""Registration: what the kubelet asks of the socket in its registry, and what it says then.

In:  GetInfo and NotifyRegistrationStatus.
Out: who the driver is and where it listens; whether the kubelet took it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from grpc.aio import Server, ServicerContext

from drakit.client import V
from drakit.pluginapi import registration_pb2 as wire
from drakit.pluginapi.registration_pb2_grpc import RegistrationServicer, add_RegistrationServicer_to_server

log = logging.getLogger("drakit.driverkit")

TYPE = "DRAPlugin"


class RegistrationService(RegistrationServicer):
    def __init__(self, driver: str, endpoint: Path, versions: Sequence[str], on_registered: Callable[[], None]) -> None:
        self._info = wire.PluginInfo(type=TYPE, name=driver, endpoint=str(endpoint), supported_versions=list(versions))
        self._on_registered = on_registered
        self.registered = False
        self.error = ""

    async def GetInfo(self, request: wire.InfoRequest, context: ServicerContext[object, object]) -> wire.PluginInfo:
        return self._info

    async def NotifyRegistrationStatus(
        self, request: wire.RegistrationStatus, context: ServicerContext[object, object]
    ) -> wire.RegistrationStatusResponse:
        self.registered, self.error = request.plugin_registered, request.error
        if request.plugin_registered:
            log.log(V[2], "registered with the kubelet")
            # A kubelet that starts deletes the slices of its node; publish them again without waiting for the watch.
            self._on_registered()
        else:
            log.error("the kubelet refused the registration: %s", request.error)
        return wire.RegistrationStatusResponse()

    def add_to(self, server: Server) -> None:
        add_RegistrationServicer_to_server(self, server)
