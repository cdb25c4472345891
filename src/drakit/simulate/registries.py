"""The sockets of a node whose drivers are in this process, in processes of their own, or both.

In:  plugins of this process; after `open`, whatever puts a socket into a real registry directory.
Out: one registry directory and one dialer for the agent. A path from the root is a real socket.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from drakit.base.clock import Clock
from drakit.nodeagent.plugins.channels import GrpcDialer
from drakit.nodeagent.plugins.contract import DriverPeer, RegistrationPeer
from drakit.nodeagent.plugins.directory import RegistryDirectory
from drakit.simulate.links import NodeSockets


class OpenSockets(NodeSockets):
    """Costs nothing beyond NodeSockets until it is opened."""

    def __init__(self) -> None:
        super().__init__()
        self._registry: RegistryDirectory | None = None
        self._dialer = GrpcDialer()

    async def open(self, path: Path, clock: Clock) -> None:
        """Look into a directory too. Idempotent; the agent hears of it at once."""
        if self._registry is None:
            self._registry = await RegistryDirectory(path, clock).__aenter__()
            self._tell()

    async def close(self) -> None:
        """Idempotent."""
        registry, self._registry = self._registry, None
        if registry is not None:
            await registry.__aexit__()

    def sockets(self) -> Mapping[str, tuple[int, int]]:
        return {**super().sockets(), **(self._registry.sockets() if self._registry is not None else {})}

    async def changed(self) -> None:
        if self._registry is None:
            await super().changed()
            return
        either = [asyncio.ensure_future(each) for each in (super().changed(), self._registry.changed())]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in either:
                each.cancel()
            await asyncio.gather(*either, return_exceptions=True)

    def registration(self, path: str) -> RegistrationPeer:
        return self._dialer.registration(path) if path.startswith("/") else super().registration(path)

    def driver(self, endpoint: str) -> DriverPeer:
        return self._dialer.driver(endpoint) if endpoint.startswith("/") else super().driver(endpoint)
