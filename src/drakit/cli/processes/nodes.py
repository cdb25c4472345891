"""The nodes of `drakit up`: for each an agent and example drivers, in this process, over the real sockets.

In:  how many nodes, with which devices; a directory for their files.
Out: components. Each agent acts as its node, each driver as a service account on that node, with least rights.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from pathlib import Path

import yaml
from prometheus_client import CollectorRegistry

from drakit.api.codec.documents import to_wire
from drakit.api.exchange import User
from drakit.api.objects.plain import Plain
from drakit.apiserver.auth.identities import ADMIN, account, node_agent
from drakit.base.clock import RealClock
from drakit.base.errors import DrakitError, Unavailable
from drakit.cli.processes.agent import PagesOf, make_agent
from drakit.cli.processes.components import Component, Embedded, Surroundings
from drakit.cli.processes.diagnostics import bind_port
from drakit.client import CLAIMS, Client
from drakit.driverkit import Driver, KubeletPlugin, PluginSettings
from drakit.drivers import DRIVERS, load_profile
from drakit.drivers.profiles import YAML_LOADER
from drakit.nodeagent.containers.logrotation import LogBounds
from drakit.nodeagent.node.facts import this_machine
from drakit.nodeagent.runtimes.cdi import CdiRegistry
from drakit.nodeagent.runtimes.cgroups import Cgroups, cgroup_name
from drakit.nodeagent.runtimes.process import ProcessRuntime, refuse_remote
from drakit.nodeagent.server import NodeCertificates
from drakit.nodeagent.settings import AgentPaths, AgentSettings

NAMESPACE = "drakit-drivers"
ZONES = ("a", "b", "c")
_LONGEST = 40
"""The most characters of a node's directory, so that sockets of drivers with long names fit below it."""
_END_SECONDS = 1.0
"""What containers have to end when the cluster stops; all of it should take two."""


@dataclass(frozen=True, slots=True)
class NodePlan:
    """What the nodes of a cluster are like."""

    count: int
    directory: Path
    address: str
    """Where the API server listens: processes are run for nobody beyond this machine."""
    profile: str = "gpu"
    cards: int | None = None
    allow_remote: bool = False
    certify: Callable[[str], NodeCertificates | None] = lambda _: None

    @property
    def names(self) -> list[str]:
        return [f"node-{number}" for number in range(1, self.count + 1)]

    def check(self) -> None:
        """Raise UsageError for a profile that there is not, or that has fewer cards; refuse to serve strangers."""
        load_profile(self.profile).device_pools("node", cards=self.cards)
        if self.count:
            refuse_remote([self.address], allowed=self.allow_remote)


def node_components(plan: NodePlan) -> list[Component]:
    """The rights and classes of the drivers first, then a component per node."""
    if not plan.count:
        return []
    applied = asyncio.Event()
    installed = Component("drivers", ADMIN, lambda client, _: Installation(client, list(_manifests(plan)), applied))
    return [installed, *(_node_component(plan, name, applied) for name in plan.names)]


async def end_forgotten(directory: Path, kept: Sequence[str] = ()) -> None:
    """End what containers of nodes are left below the directory, after a process that was killed.

    `kept` are the nodes that come up again: those adopt their own.
    """
    for place in _places(directory):
        if place.name not in kept:
            cgroups = Cgroups(cgroup_name(place.name, place))
            runtime = ProcessRuntime(place / "runtime", clock=RealClock(), cdi=CdiRegistry(()), cgroups=cgroups)
            await _end_containers(runtime, cgroups)


def _places(directory: Path) -> list[Path]:
    """The directories of nodes that have run containers."""
    return sorted(each.parent for each in directory.glob("*/runtime"))


def _node_component(plan: NodePlan, name: str, installed: asyncio.Event) -> Component:
    def make(client: Client, around: Surroundings) -> Embedded:
        return EmbeddedNode(plan, name, client, around, installed)

    return Component(name, node_agent(name), make)


def _manifests(plan: NodePlan) -> Iterator[Plain]:
    for driver in DRIVERS:
        text = (files("drakit.drivers") / "data" / "rbac" / f"{driver}.yaml").read_text(encoding="utf-8")
        yield from yaml.load_all(text, Loader=YAML_LOADER)
        for each in load_profile(_profile(plan, driver)).device_classes():
            yield dict(to_wire(each))


def _profile(plan: NodePlan, driver: str) -> str:
    return plan.profile if driver == "gpu" else driver


class Installation:
    """Applies manifests once, and sets `applied`; then there is nothing to do."""

    def __init__(self, client: Client, manifests: Sequence[Plain], applied: asyncio.Event | None = None) -> None:
        self._client = client
        self._manifests = manifests
        self._applied = applied or asyncio.Event()
        self._stopped = asyncio.Event()

    async def run(self) -> None:
        for each in self._manifests:
            await self._client.apply(each, manager="drakit-up", force=True)
        self._applied.set()
        await self._stopped.wait()

    async def wait_ready(self) -> None:
        await self._applied.wait()

    async def stop(self) -> None:
        self._stopped.set()


class EmbeddedNode:
    """One node. When it stops, its containers end; the next start runs them again as their restart policy says."""

    def __init__(
        self, plan: NodePlan, name: str, client: Client, around: Surroundings, installed: asyncio.Event
    ) -> None:
        """`installed` is set when the drivers have their rights."""
        self._installed = installed
        self._plan = plan
        self._name = name
        self._around = around
        place = plan.directory.absolute() / name
        (place / "cdi").mkdir(parents=True, exist_ok=True)
        self._root = short_path(place)
        self._cdi = self._root / "cdi"
        self._cgroups = Cgroups(cgroup_name(name, place))
        self._agent = make_agent(
            client,
            self._runtime(),
            self._settings(),
            clock=around.clock,
            registry=CollectorRegistry(),
            pages=self._pages(),
        )
        self._ready = asyncio.Event()
        self._stopped = asyncio.Event()

    def _settings(self) -> AgentSettings:
        number = self._plan.names.index(self._name)
        return AgentSettings(
            node=self._name,
            paths=AgentPaths.below(self._root),
            # Nodes of one machine: by its own name pods could not choose between them.
            machine=this_machine(self._root, hostname=self._name),
            gates=self._around.gates,
            logs=LogBounds(),
            labels={"topology.kubernetes.io/zone": ZONES[number % len(ZONES)], **load_profile("fabric").node_labels},
        )

    def _runtime(self) -> ProcessRuntime:
        return ProcessRuntime(
            self._root / "runtime",
            clock=self._around.clock,
            cdi=CdiRegistry((self._cdi,)),
            cgroups=self._cgroups,
            api_addresses=[self._plan.address],
            allow_remote=self._plan.allow_remote,
        )

    def _pages(self) -> PagesOf | None:
        certificates = self._plan.certify(self._name)
        return PagesOf(certificates, bind_port("127.0.0.1", 0)) if certificates is not None else None

    async def run(self) -> None:
        async with AsyncExitStack() as stack:
            # The process has a cache of claims: a node alone has to read those that it waits for.
            stack.callback(self._around.informers.of(CLAIMS).subscribe(self._agent.on_claim))
            agent = asyncio.create_task(self._agent.run(), name=self._name)
            stack.push_async_callback(self._end, agent)
            ready = asyncio.create_task(self._drivers_may_start())
            stopped = asyncio.create_task(self._stopped.wait())
            stack.callback(ready.cancel)
            stack.callback(stopped.cancel)
            await asyncio.wait((agent, ready, stopped), return_when=asyncio.FIRST_COMPLETED)
            for name in DRIVERS:
                await stack.enter_async_context(self._plugin(name).running())
            self._ready.set()
            await asyncio.wait((agent, stopped), return_when=asyncio.FIRST_COMPLETED)

    async def _drivers_may_start(self) -> None:
        """After the agent, which wipes the slices of its node when it starts; and not before they have their rights."""
        await self._agent.wait_ready()
        await self._installed.wait()

    async def wait_ready(self) -> None:
        await self._ready.wait()

    async def stop(self) -> None:
        self._stopped.set()

    def _plugin(self, name: str) -> KubeletPlugin:
        user: User = account(NAMESPACE, name, node=self._name)
        settings = PluginSettings(
            node_name=self._name,
            plugin_dir=self._root / "plugins",
            registry_dir=self._root / "plugins_registry",
            cdi_dir=self._cdi,
            grace=_END_SECONDS,
        )
        return KubeletPlugin(self._driver(name), self._around.client(user), settings, clock=self._around.clock)

    def _driver(self, name: str) -> Driver:
        module, _, class_name = DRIVERS[name].partition(":")
        arguments = {"profile": _profile(self._plan, name), "directory": str(self._root / "devices" / name)}
        if name == "gpu" and self._plan.cards is not None:
            arguments["cards"] = str(self._plan.cards)
        made: Driver = getattr(import_module(module), class_name)(**arguments)
        return made

    async def _end(self, agent: asyncio.Task[None]) -> None:
        await self._agent.stop()
        await agent
        await _end_containers(self._runtime(), self._cgroups)
        if self._root.is_symlink():
            self._root.unlink()


def short_path(directory: Path) -> Path:
    """The directory by a path short enough for Unix sockets below it, which have 108 bytes.

    A long one is reached by a link that is named after it: the same in the next run, as files remember paths.
    """
    if len(str(directory)) <= _LONGEST:
        return directory
    digest = hashlib.sha256(str(directory).encode()).hexdigest()[:12]
    places = (Path(tempfile.gettempdir()) / f"drakit-{digest}", Path("/tmp") / f"drakit-{digest}")  # noqa: S108
    link = next((each for each in places if len(str(each)) <= _LONGEST), places[-1])
    try:
        link.symlink_to(directory)
    except FileExistsError:
        # The directory is open to all users: somebody else could have put a link there.
        if link.lstat().st_uid != os.getuid() or link.readlink() != directory:
            raise Unavailable(f"{link} is in the way: it should lead to {directory}") from None
    return link


async def _end_containers(runtime: ProcessRuntime, cgroups: Cgroups) -> None:
    async with runtime:
        going = [each.id for each in await runtime.containers()]
        await asyncio.gather(*(_quietly(runtime, each) for each in going))
        # The directory may go with this process, and nobody would come back for them.
        await cgroups.clear(RealClock())


async def _quietly(runtime: ProcessRuntime, container: str) -> None:
    try:
        await runtime.stop_container(container, grace=_END_SECONDS)
    except DrakitError:
        return  # it has ended by itself
