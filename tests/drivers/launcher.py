"""Start drivers made with the kit in the test's own process: real sockets and files, without the time of a process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from drakit.client import Client, load_kubeconfig
from drakit.client.transport.http import Http
from drakit.conformance import DriverPlaces
from drakit.driverkit import Driver, KubeletPlugin, PluginSettings

REMOVE = "--remove-slices-on-exit"
Make = Callable[[Path], Driver]
"""A driver whose hardware is in a directory."""


class KitLauncher:
    def __init__(self, make: Make) -> None:
        self._make = make

    async def start(self, places: DriverPlaces, pod_uid: str, further: Sequence[str] = ()) -> KitDriver:
        settings = PluginSettings(
            node_name=places.node_name,
            plugin_dir=places.plugins,
            registry_dir=places.registry,
            cdi_dir=places.cdi,
            instance=pod_uid,
            grace=0.1,
            remove_slices_on_exit=REMOVE in further,
        )
        driver = KitDriver(self._make(places.plugins / "hardware"), places.kubeconfig, settings)
        await driver.start()
        return driver


class KitDriver:
    def __init__(self, driver: Driver, kubeconfig: Path, settings: PluginSettings) -> None:
        self._driver = driver
        self._kubeconfig = kubeconfig
        self._settings = settings
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        started = asyncio.Event()
        self._task = asyncio.create_task(self._run(started))
        waiting = asyncio.create_task(started.wait())
        await asyncio.wait((self._task, waiting), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()

    async def _run(self, started: asyncio.Event) -> None:
        async with (
            Client(Http(load_kubeconfig([self._kubeconfig]))) as client,
            KubeletPlugin(self._driver, client, self._settings).running(),
        ):
            started.set()
            await self._stopping.wait()

    @property
    def ended(self) -> bool:
        return self._task is None or self._task.done()

    def last_words(self) -> str:
        failed = self._task.exception() if self._task is not None and self.ended else None
        return str(failed or "")

    async def terminate(self, seconds: float) -> int | None:  # noqa: ARG002 - it ends in time, or the test hangs
        self._stopping.set()
        if self._task is not None:
            await self._task
        return 0

    async def kill(self) -> None:
        """As near as one process comes to it: whatever it is doing is cancelled."""
        if self._task is not None and not self.ended:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
