"""A driver on a node, put together: what the sockets call, what runs beside them.

In:  the author's driver, a client, and where things are. Clock, files and boot id are parameters.
Out: calls in process (`prepare`, `unprepare`, `publish`), or over sockets while `running`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry

from drakit.base.clock import Clock, RealClock
from drakit.base.errors import UsageError
from drakit.base.names import check_dns_subdomain
from drakit.client import Client
from drakit.driverkit.calls.answers import Answer
from drakit.driverkit.calls.artifacts import Artifacts
from drakit.driverkit.calls.binder import DeviceBinder
from drakit.driverkit.calls.inventory import PublishedDevices
from drakit.driverkit.calls.lifecycle import ClaimCalls
from drakit.driverkit.calls.meter import CallMetrics
from drakit.driverkit.calls.reader import ClaimReader
from drakit.driverkit.calls.statuses import DeviceStatusWriter
from drakit.driverkit.calls.sweep import Sweep
from drakit.driverkit.claims import ClaimRef, PreparedDevice
from drakit.driverkit.driver import Driver, overrides
from drakit.driverkit.health import HealthBoard
from drakit.driverkit.serving.healthcheck import check_sockets
from drakit.driverkit.serving.paths import REGISTRATION, SHORTENED, plugin_paths
from drakit.driverkit.serving.registration import RegistrationService
from drakit.driverkit.serving.services import add_services, offered
from drakit.driverkit.serving.sockets import UnixServer, remove_stale
from drakit.driverkit.slices.plan import SlicePlan
from drakit.driverkit.slices.publisher import SlicePublisher
from drakit.driverkit.state.boot import read_boot_id
from drakit.driverkit.state.files import FileSystem, RealFileSystem
from drakit.driverkit.state.locks import ClaimLocks
from drakit.driverkit.state.records import Records

log = logging.getLogger("drakit.driverkit")

_NAME_LENGTH = 63
_PAUSE_AFTER_FAILURE = 5.0


class PluginSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where a driver runs."""

    node_name: str
    plugin_dir: Path = Path("/var/lib/kubelet/plugins")
    """The kubelet's directory for plugins; the driver has a directory of its own in it."""
    registry_dir: Path = Path("/var/lib/kubelet/plugins_registry")
    cdi_dir: Path = Path("/var/run/cdi")
    instance: str = ""
    """The uid of the pod, when an old and a new instance may run side by side during a rolling update."""
    remove_slices_on_exit: bool = False
    grace: float = 10.0
    """Seconds that calls under way have when the driver stops."""


class KubeletPlugin:
    def __init__(
        self,
        driver: Driver,
        client: Client,
        settings: PluginSettings,
        *,
        clock: Clock | None = None,
        files: FileSystem | None = None,
        boot_id: str | None = None,
        registry: CollectorRegistry | None = None,
        random: Random | None = None,
    ) -> None:
        """Raise UsageError for a name that is none, or directories that are too long."""
        _check_name(driver.name)
        self.driver = driver
        self.settings = settings
        self.paths = plugin_paths(
            driver.name,
            plugin_dir=settings.plugin_dir,
            registry_dir=settings.registry_dir,
            instance=settings.instance,
        )
        self.clock: Clock = clock or RealClock()
        self.registry = registry or CollectorRegistry()
        self._files = files or RealFileSystem()
        self._boot_id = read_boot_id() if boot_id is None else boot_id
        self.board = HealthBoard(self.clock) if overrides(driver, "health") else None
        self._build_calls(client, random)
        self.publisher = SlicePublisher(
            client,
            self._inventory,
            driver=driver.name,
            node_name=settings.node_name,
            clock=self.clock,
            registry=self.registry,
            random=random,
            files=self._files,
            remembered=self.paths.shared_pools,
            lock=self.paths.publishing_lock,
        )
        self.registration = RegistrationService(
            driver.name, self.paths.service, offered(self.board), self.publisher.trigger
        )
        driver.node_name = settings.node_name
        driver.client = client
        driver._kit = self

    def _build_calls(self, client: Client, random: Random | None) -> None:
        driver, settings, paths = self.driver, self.settings, self.paths
        self._inventory = PublishedDevices(driver, settings.node_name)
        metrics = CallMetrics(self.registry, driver.name)
        reader = ClaimReader(client, settings.node_name)
        records = Records(paths.records, self._files)
        artifacts = Artifacts(
            driver.name,
            cdi_dir=settings.cdi_dir,
            metadata_dir=paths.metadata,
            files=self._files,
            with_metadata=driver.metadata,
        )
        locks = ClaimLocks(serialize=driver.serialize, path=paths.calls_lock, files=self._files, clock=self.clock)
        self._statuses = DeviceStatusWriter(client, driver.name, records, self.clock)
        self.calls = ClaimCalls(
            driver,
            reader=reader,
            records=records,
            artifacts=artifacts,
            inventory=self._inventory,
            locks=locks,
            boot_id=self._boot_id,
            clock=self.clock,
            metrics=metrics,
            statuses=self._statuses,
        )
        binds = overrides(driver, "bind")
        self._binder = DeviceBinder(client, driver, self._inventory, self.calls, self.clock, random) if binds else None
        self.sweep = Sweep(
            self.calls,
            records=records,
            artifacts=artifacts,
            reader=reader,
            locks=locks,
            boot_id=self._boot_id,
            clock=self.clock,
            metrics=metrics,
        )

    # In process

    async def start(self) -> None:
        """What comes before the first call: directories, and files of claims that are prepared. Raise UsageError."""
        for path in (self.paths.state, self.settings.cdi_dir):
            try:
                await self._files.make_directory(path)
            except OSError as error:
                raise UsageError(f"cannot make {path}: {error.strerror}") from error
        await self.sweep.restore()

    async def prepare(self, claims: Sequence[ClaimRef]) -> dict[str, Answer]:
        """As NodePrepareResources: an answer per claim uid."""
        return await self.calls.prepare(claims)

    async def unprepare(self, claims: Sequence[ClaimRef]) -> dict[str, str]:
        """As NodeUnprepareResources: per claim uid an error, or nothing."""
        return await self.calls.unprepare(claims)

    async def update(self, uid: str, devices: Sequence[PreparedDevice]) -> None:
        """Say more about devices of a prepared claim. Raise NotFound, or Unavailable."""
        await self.calls.update(uid, devices)

    async def publish(self) -> SlicePlan:
        """Bring the slices up to date, once. Raise what keeps it from being done."""
        return await self.publisher.publish()

    async def check(self) -> None:
        """Whether the sockets answer. Raise Unavailable."""
        await check_sockets(self.paths)

    # Over sockets

    @asynccontextmanager
    async def running(self, *, sockets: bool = True) -> AsyncIterator[KubeletPlugin]:
        """Work as long as the context is open: publish, sweep, serve a kubelet; then let calls end, and leave in order.

        Without `sockets`, whoever is in the process calls `prepare` and `unprepare`.
        """
        await self.start()
        async with AsyncExitStack() as stack:
            # Entered first, so it runs last: the sockets are closed by then and no new call comes.
            stack.push_async_callback(self._leave)
            servers = self._servers() if sockets else ()
            await stack.enter_async_context(_background(self._beside(servers)))
            for server in servers:
                await stack.enter_async_context(server.running(grace=self.settings.grace))
            if self.board is not None:
                stack.callback(self.board.close)  # streams would keep the sockets busy
            yield self

    def _servers(self) -> tuple[UnixServer, UnixServer]:
        """The service socket opens before the registration socket, and closes after it."""
        self._remove_stale_sockets()
        service = UnixServer(
            self.paths.service,
            lambda server: add_services(server, self.calls, self.board, self.clock),
            self.clock,
        )
        return service, UnixServer(self.paths.registration, self.registration.add_to, self.clock)

    async def _beside(self, servers: Sequence[UnixServer]) -> None:
        async with asyncio.TaskGroup() as tasks:
            for server in servers:
                tasks.create_task(server.keep(), name=f"socket {server.path.name}")
            tasks.create_task(self.publisher.run(), name="slices")
            tasks.create_task(self.sweep.run(), name="sweep")
            tasks.create_task(self._statuses.run(), name="claim status")
            if self._binder is not None:
                tasks.create_task(self._binder.run(), name="binding")
            if self.board is not None:
                tasks.create_task(self.follow_health(self.board), name="health")

    async def follow_health(self, board: HealthBoard) -> None:
        """Put up what the driver reports; a stream that ends or fails is begun again. Until cancelled."""
        while True:
            try:
                async for reports in self.driver.health():
                    board.put(reports)
                board.fail("the driver has ended its reports")
            except Exception as error:
                log.exception("health() failed")
                board.fail(f"the driver cannot tell: {error}")
            await self.clock.sleep(_PAUSE_AFTER_FAILURE)

    async def _leave(self) -> None:
        await self.calls.drain(self.settings.grace)
        if self.settings.remove_slices_on_exit:
            await self.publisher.remove()

    def devices_changed(self) -> None:
        # Forget first: the publisher must not read the old devices once more.
        self._inventory.forget()
        self.publisher.trigger()

    def _remove_stale_sockets(self) -> None:
        stale = remove_stale(self.settings.registry_dir, self.driver.name[:SHORTENED], REGISTRATION)
        stale += remove_stale(self.paths.state, "dra", ".sock")
        for path in stale:
            log.info("removed %s: nobody listens there", path)


@asynccontextmanager
async def _background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run something until the context ends; if it fails, so does whoever is in the context."""
    task = asyncio.create_task(work)
    owner = asyncio.current_task()
    task.add_done_callback(lambda done: owner.cancel() if owner and not done.cancelled() else None)
    try:
        yield
    finally:
        task.cancel()
        failure = (await asyncio.gather(task, return_exceptions=True))[0]
        if isinstance(failure, Exception):
            if owner is not None:
                owner.uncancel()
            raise failure


def _check_name(name: str) -> None:
    problems = check_dns_subdomain(name)
    if len(name) > _NAME_LENGTH:
        problems.append(f"must be no more than {_NAME_LENGTH} characters")
    if problems:
        raise UsageError(f"the driver's name {name!r}: {problems[0]}")
