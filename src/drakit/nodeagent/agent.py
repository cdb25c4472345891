"""The node agent: all of its parts, put together.

In:  a client with the node's identity, a runtime, settings; clock, dialer, registry directory and flushes.
Out: `run` until stopped. Pods stay as they are when the agent ends; the next one goes on with them.

    checkpoint -> node object -> slices of the node deleted -> plugins -> pods
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from importlib.metadata import version
from random import Random

import aiohttp
from prometheus_client import CollectorRegistry

from drakit.api import Partial, Pod, ResourceClaim
from drakit.base.clock import Clock, RealClock
from drakit.base.errors import DrakitError
from drakit.client import PODS, Client
from drakit.informers import Informer, ListScope
from drakit.nodeagent.claims.admission import ClaimAdmission
from drakit.nodeagent.claims.checkpoint import Checkpoint, CheckpointDamaged
from drakit.nodeagent.claims.preparation import ClaimPreparation
from drakit.nodeagent.claims.rebuild import rebuild
from drakit.nodeagent.claims.records import ClaimRecords
from drakit.nodeagent.claims.waits import ClaimWaits
from drakit.nodeagent.containers.backoff import RestartBackoff
from drakit.nodeagent.containers.config import drop_logs
from drakit.nodeagent.containers.fieldrefs import NodeFacts
from drakit.nodeagent.containers.handlers import HandlerRunner
from drakit.nodeagent.containers.limits import BEST_EFFORT, qos_class
from drakit.nodeagent.containers.logrotation import LogRotation
from drakit.nodeagent.containers.sources import ClientObjects
from drakit.nodeagent.containers.volumes import VolumeStore
from drakit.nodeagent.devices.allocation import DeviceAllocation
from drakit.nodeagent.devices.registration import DevicePlugins
from drakit.nodeagent.metrics import AgentMetrics
from drakit.nodeagent.node.facts import allocatable_of
from drakit.nodeagent.node.object import NodeObject, NodeState
from drakit.nodeagent.node.pressure import NodePressure, PressureParts
from drakit.nodeagent.node.shutdown import NOT_READY, end_pods
from drakit.nodeagent.node.usage import MachineReader, ThisMachine
from drakit.nodeagent.plugins.channels import GrpcDialer
from drakit.nodeagent.plugins.contract import Dialer
from drakit.nodeagent.plugins.directory import RegistryDirectory, SocketDirectory
from drakit.nodeagent.plugins.drivers import PLUGIN_TYPE, Drivers
from drakit.nodeagent.plugins.health import Device, HealthReports
from drakit.nodeagent.plugins.registration import PluginHandler, PluginRegistration
from drakit.nodeagent.plugins.slices import SliceRemoval
from drakit.nodeagent.podresources.resourcelist import PodResourceListing
from drakit.nodeagent.podresources.service import PodResourcesServer
from drakit.nodeagent.pods.admission import NodeFit, is_critical, victims
from drakit.nodeagent.pods.containerstatuses import HealthView
from drakit.nodeagent.pods.events import WARNING, EventLog
from drakit.nodeagent.pods.feed import PodFeed
from drakit.nodeagent.pods.services import NodeEviction, PodServices, Rejection
from drakit.nodeagent.pods.starts import ContainerStarts
from drakit.nodeagent.pods.worker import PodWorker
from drakit.nodeagent.pods.workers import PodWorkers
from drakit.nodeagent.pods.writer import StatusWriter
from drakit.nodeagent.runtimes.contract import PodIdentity, Runtime
from drakit.nodeagent.settings import AgentSettings

log = logging.getLogger("drakit.nodeagent")


class NodeAgent:
    """One node. `run` once; `stop` ends it in good order."""

    def __init__(
        self,
        client: Client,
        runtime: Runtime,
        settings: AgentSettings,
        *,
        clock: Clock | None = None,
        dialer: Dialer | None = None,
        directory: SocketDirectory | None = None,
        registry: CollectorRegistry | None = None,
        pods: PodFeed | None = None,
        random: Random | None = None,
        flush: Callable[[int], None] = os.fsync,
        server: Callable[[NodeAgent], AbstractAsyncContextManager[object]] | None = None,
        usage: MachineReader | None = None,
    ) -> None:
        """`server` makes what is served as long as the agent runs: logs, exec, pages. `usage` measures the machine."""
        self._server = server
        self.settings = settings
        self.clock: Clock = clock or RealClock()
        self.runtime = runtime
        self.metrics = AgentMetrics(registry or CollectorRegistry())
        self._client = client
        self._random = random or Random()
        self._directory = directory
        self._extended = "DRAExtendedResource" in settings.gates.on
        self._health_on = "ResourceHealthStatus" in settings.gates.on

        # Built from the inside out: what others are given must exist first. Nothing runs before `run`.
        self.events = EventLog(client, self.clock, settings.node)
        self.device_plugins = DevicePlugins(settings.paths.device_plugins, on_change=self._on_devices, flush=flush)
        self.devices = DeviceAllocation(
            self.device_plugins, settings.paths.device_plugins, extended=self._extended, flush=flush
        )
        self.health = HealthReports(self.clock, directory=settings.paths.root, flush=flush)
        self._dialer: Dialer = dialer or GrpcDialer()
        self.drivers = self._make_drivers()
        self.handlers: dict[str, PluginHandler] = {PLUGIN_TYPE: self.drivers}
        self.checkpoint = Checkpoint(settings.paths.root, flush=flush)
        self.records = ClaimRecords()
        self.state = node_state(settings, self.device_plugins)
        self.node = NodeObject(client, self.state, self.clock)
        self.pods: PodFeed = pods or own_pods(client, settings.node, self.clock, self._random)
        self._slices = SliceRemoval(client, settings.node, self.clock, self._random)
        self._writer = StatusWriter(client, self.clock)
        self._waits = ClaimWaits(client, self.clock)
        self._fit = NodeFit(lambda: self.state.amounts()[1], settings.gates)
        self._pressure = self._make_pressure(usage or ThisMachine(settings.paths.root))
        self._workers: PodWorkers | None = None
        self._ready = asyncio.Event()
        self._stopped = asyncio.Event()

    # For whoever starts it

    def on_claim(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        """A claim has changed; for a process that has a cache of them. Others need not call this."""
        claim = new or old
        if claim is not None:
            metadata = claim.metadata
            self._waits.tell(metadata.namespace, metadata.name, metadata.resource_version if new is not None else "")

    async def run(self) -> None:
        """Run the node until `stop` or cancellation."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.runtime)
            self.settings.paths.make()
            damaged = self._load()
            for each in (self._slices, self.health, self._writer, self.drivers, self._waits):
                stack.push_async_callback(each.stop)
            session = await stack.enter_async_context(aiohttp.ClientSession())
            self._workers = await self._make_workers(session)
            stack.push_async_callback(self._workers.stop)
            await stack.enter_async_context(self._background())
            directory = self._directory
            if directory is None:
                directory = await stack.enter_async_context(RegistryDirectory(self.settings.paths.registry, self.clock))
            if self.settings.serves_device_plugins:
                await stack.enter_async_context(self.device_plugins)
            registration = PluginRegistration(directory, self._dialer, self.handlers, self.clock)
            plugins = asyncio.create_task(registration.run(), name="plugin registration")
            stack.push_async_callback(_end, plugins)
            # Drivers that are there come first: a pod that needs one would only fail and be tried again.
            await registration.first_attempts()
            await self._begin_pods(damaged)
            if self._server is not None:
                await stack.enter_async_context(self._server(self))
            if self.settings.paths.pod_resources is not None:
                await stack.enter_async_context(PodResourcesServer(self.listing, self.settings.paths.pod_resources))
            self._ready.set()
            await self._until_stopped(plugins)

    async def wait_ready(self) -> None:
        """Wait until pods are followed and plugins may register."""
        await self._ready.wait()

    @property
    def is_synced(self) -> bool:
        return self._ready.is_set()

    async def stop(self) -> None:
        """Pods stay as they are; with a grace period for shutdowns, the machine goes down and they end. Idempotent."""
        if self.settings.shutdown_grace > 0 and self._ready.is_set() and not self._stopped.is_set():
            await self._shut_down()
        self._stopped.set()

    async def _shut_down(self) -> None:
        self.state.shutting_down = NOT_READY
        with suppress(DrakitError):
            await self.node.report()
        grace, critical = self.settings.shutdown_grace, self.settings.shutdown_grace_critical
        await end_pods(self.workers.all(), self.clock, grace=grace, critical=critical)
        await self._writer.flush_all()
        await self.events.drain()

    @property
    def workers(self) -> PodWorkers:
        if self._workers is None:
            raise RuntimeError("the agent does not run")
        return self._workers

    @property
    def listing(self) -> PodResourceListing:
        return PodResourceListing(
            self._living_pods,
            self.records,
            plugin_devices=self.devices.devices,
            allocatable=self.device_plugins.healthy,
            extended=self._extended,
        )

    def _all_workers(self) -> Sequence[PodWorker]:
        return self.workers.all()

    def _living_pods(self) -> Sequence[Pod]:
        return [each.view for each in self.workers.active()]

    # Parts

    def _make_drivers(self) -> Drivers:
        watch_health = self.health.follow if self._health_on else None
        return Drivers(self._dialer, self.clock, observe=self.metrics.observe_call, watch_health=watch_health)

    async def _make_workers(self, session: aiohttp.ClientSession) -> PodWorkers:
        settings, objects = self.settings, ClientObjects(self._client)
        about = await self.runtime.version()
        self.state.runtime = f"{about.name}://{about.version}"
        runner = HandlerRunner(self.runtime, session, clock=self.clock)
        self._volumes = VolumeStore(settings.paths.pods, objects=objects, clock=self.clock)
        memory = settings.machine.capacity.get("memory")
        self.preparation = ClaimPreparation(
            self.records,
            self.checkpoint,
            ClaimAdmission(self._client, settings.gates, self.drivers.check_registered),
            self.drivers,
            self.metrics,
            self.clock,
        )
        starts = ContainerStarts(
            self.runtime,
            self.records,
            objects,
            self.events,
            self.metrics,
            runner,
            self.devices,
            pods_directory=settings.paths.pods,
            node_memory=memory.value if memory is not None else 0,
            extended=self._extended,
            limits_with_claims=settings.limits_with_claims,
        )
        services = PodServices(
            clock=self.clock,
            runtime=self.runtime,
            runtime_name=about.name,
            preparation=self.preparation,
            waits=self._waits,
            health=HealthView(
                self.records,
                self.health.of,
                enabled=self._health_on,
                messages="ResourceHealthStatusMessage" in settings.gates.on,
            ),
            writer=self._writer,
            events=self.events,
            starts=starts,
            runner=runner,
            volumes=self._volumes,
            backoff=RestartBackoff(clock=self.clock),
            log_root=settings.paths.logs,
            node=self._node_facts,
            admit=self._admit,
            release=self.devices.release,
            limits_with_claims=settings.limits_with_claims,
        )
        self.drivers.listeners.arrived.append(self._on_driver)
        self.drivers.listeners.absent.append(self._slices.begin)
        self.health.on_change.append(self._on_health)
        return PodWorkers(services)

    def _make_pressure(self, reader: MachineReader) -> NodePressure:
        settings = self.settings
        parts = PressureParts(
            self.state,
            self.node.changed,
            self._all_workers,
            self.runtime,
            self.events,
            self.metrics,
            settings.paths.pods,
            with_claims=settings.limits_with_claims,
        )
        return NodePressure(settings.eviction_hard, reader, self.clock, parts)

    def _node_facts(self) -> NodeFacts:
        _, allocatable = self.state.amounts()
        return NodeFacts(
            host_ips=(self.settings.machine.internal_ip,),
            allocatable={name: str(amount) for name, amount in allocatable.items()},
        )

    def _load(self) -> str:
        """Read the checkpoint. Return why it could not be read; empty if it could."""
        try:
            found = self.checkpoint.load()
        except CheckpointDamaged as error:
            aside = self.checkpoint.set_aside(self.clock.now().strftime("%Y%m%dT%H%M%S"))
            message = f"{error}; it was set aside as {aside.name} and is made anew from the pods that are there"
            log.error("%s", message)
            self.events.about_node(WARNING, "DRACheckpointDamaged", message)
            self.checkpoint.save(None)
            return message
        if found is None:
            self.checkpoint.save(None)
        for record in found or ():
            self.records.add(record)
        return ""

    @asynccontextmanager
    async def _background(self) -> AsyncIterator[None]:
        if self.settings.registers:
            await self.node.register()
        self._slices.begin()
        works = [self.events.run(), self.pods.run(), self._follow_runtime()]
        if self.settings.registers:
            works.append(self.node.run())
        if self.settings.eviction_hard:
            works.append(self._pressure.run())
        if self.settings.logs is not None:
            works.append(LogRotation(self.runtime, self.clock, self.settings.logs).run())
        tasks = [asyncio.create_task(work) for work in works]
        try:
            await self.pods.wait_synced()
            yield
        finally:
            await _end(*tasks)

    async def _begin_pods(self, damaged: str) -> None:
        """Workers for what the server has, then for what only the runtime or the checkpoint knows."""
        left = {each.pod.uid: each.pod for each in await self.runtime.sandboxes()}
        if damaged:
            running = [each.view for each in self.pods.cache.all() if each.view.metadata.uid in left]
            await rebuild(self._client, self.records, running)
            self.checkpoint.save(self.records.all())
        self.preparation.count()
        self.pods.subscribe(self.workers.on_pod)
        ghosts = [
            PodIdentity(uid=uid, namespace=record.namespace, name=uid)
            for record in self.records.all()
            for uid in record.pods
            if uid not in left
        ]
        self.workers.adopt([*left.values(), *ghosts])
        self._drop_all_but({each.identity.uid for each in self.workers.all()})

    def _drop_all_but(self, uids: set[str]) -> None:
        """Of a pod that ended while no agent was there, or whose agent was killed at the very end, nothing stays."""
        self.devices.keep_only(uids)
        self._volumes.keep_only(uids)
        drop_logs(self.settings.paths.logs, uids)

    async def _follow_runtime(self) -> None:
        async for uid in self.runtime.changes():
            self.workers.wake(uid)

    async def _until_stopped(self, plugins: asyncio.Task[None]) -> None:
        stopped = asyncio.create_task(self._stopped.wait())
        try:
            done, _ = await asyncio.wait((stopped, plugins), return_when=asyncio.FIRST_COMPLETED)
            if plugins in done:
                plugins.result()
        finally:
            await _end(stopped)

    # Words between the parts

    def _on_driver(self, driver: str) -> None:
        self._slices.end(driver)
        self.workers.wake_those(lambda worker: worker.is_retrying)

    def _on_devices(self) -> None:
        self.node.changed()
        if self._workers is not None:
            self._workers.wake_those(lambda worker: worker.is_retrying)

    def _on_health(self, driver: str, devices: Sequence[Device]) -> None:
        for uid in self.records.using(driver, devices):
            self.workers.wake(uid)

    def _admit(self, pod: Partial[Pod]) -> Rejection | None:
        if self.state.shutting_down:
            return Rejection("NodeShutdown", "Pod was rejected as the node is shutting down.")
        best_effort = (pod.view.status.qos_class or qos_class(pod.document)) == BEST_EFFORT
        if (refusal := self._pressure.refusal(pod.view, best_effort=best_effort)) is not None:
            return refusal
        others = [each.view for each in self.workers.active() if each.view.metadata.uid != pod.view.metadata.uid]
        shortages = self._fit.shortages(pod.view, others)
        if not shortages:
            return None
        if is_critical(pod.view):
            chosen = victims(self._fit, pod.view, others, with_claims=self.settings.limits_with_claims)
            if chosen is not None:
                self._preempt(chosen)
                return None
        return shortages[0].rejection()

    def _preempt(self, chosen: Sequence[Pod]) -> None:
        message = "Preempted in order to admit critical pod"
        for victim in chosen:
            worker = self.workers.find(victim.metadata.uid)
            if worker is not None:
                self.events.about_pod(worker.identity, WARNING, "Preempting", message)
                why = "Pod was preempted by Kubelet to accommodate a critical pod."
                worker.evict(NodeEviction("Preempting", message, disruption=why))


def node_state(settings: AgentSettings, plugins: DevicePlugins) -> NodeState:
    return NodeState(
        settings.node,
        settings.machine,
        allocatable_of(settings.machine.capacity, settings.system_reserved, settings.kube_reserved),
        version=f"v1.36.4+drakit-{version('drakit')}",
        labels=settings.labels,
        taints=tuple(dict(each) for each in settings.taints),
        devices=plugins.amounts,
    )


def own_pods(client: Client, node: str, clock: Clock, random: Random) -> Informer[Partial[Pod]]:
    return Informer(client, PODS, scope=ListScope(fields=f"spec.nodeName={node}"), clock=clock, random=random)


async def _end(*tasks: asyncio.Task[None] | asyncio.Task[bool]) -> None:
    for task in tasks:
        task.cancel()
    for task in tasks:
        with suppress(asyncio.CancelledError):
            await asyncio.gather(task, return_exceptions=True)
