"""Start the plain driver in the test's own process: real sockets and files, without the time that a process takes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from drakit.conformance import DriverPlaces
from tests.conformance.driver.plaindriver import PlainDriver
from tests.conformance.driver.sockets import leave_stale_socket

REMOVE = "--remove"


class InProcessLauncher:
    def __init__(self, kind: type[PlainDriver] = PlainDriver) -> None:
        self._kind = kind
        self.started: list[InProcessDriver] = []

    async def start(self, places: DriverPlaces, pod_uid: str, further: Sequence[str] = ()) -> InProcessDriver:
        driver = self._kind(
            kubeconfig=places.kubeconfig,
            node=places.node_name,
            plugins=places.plugins,
            registry=places.registry,
            cdi=places.cdi,
            uid=pod_uid,
            remove=REMOVE in further,
        )
        await driver.start()
        self.started.append(InProcessDriver(driver))
        return self.started[-1]


class InProcessDriver:
    def __init__(self, driver: PlainDriver) -> None:
        self._driver = driver
        self._code: int | None = None
        self._killing: asyncio.Task[None] | None = None

    @property
    def ended(self) -> bool:
        return self._code is not None

    def last_words(self) -> str:
        return ""

    async def terminate(self, seconds: float) -> int | None:
        self._code = await self._driver.stop()
        return self._code

    async def kill(self) -> None:
        if not self.ended:
            self._code = -9
            self._killing = asyncio.create_task(self._end())
        if self._killing is not None:
            await self._killing

    async def _end(self) -> None:
        """The sockets of a process that was killed stay where they are, and nobody listens."""
        await self._driver.abort()
        await self._driver.client.close()
        for path in (self._driver.endpoint, self._driver.registration):
            leave_stale_socket(path)
