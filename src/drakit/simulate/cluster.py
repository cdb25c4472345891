"""A cluster in this process on a virtual clock: API server, controllers, scheduler, nodes with drivers.

In:  how it is to be: gates, scheduler configuration, nodes.
Out: a running cluster on a SteppedLoop. Components talk to the server without sockets, each under its identity.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric import ec

from drakit.api import Device
from drakit.api.exchange import User
from drakit.apiserver import Server, Settings, build_server
from drakit.apiserver.auth.identities import ADMIN, CONTROLLER_MANAGER, SCHEDULER, controller, node_agent
from drakit.base.clock import Clock
from drakit.base.gates import FeatureGates
from drakit.client import NODES, Client, InProcess
from drakit.controllers import Controllers
from drakit.driverkit import DevicePool, Driver
from drakit.drivers import load_profile
from drakit.informers import Informers
from drakit.nodeagent.agent import NodeAgent
from drakit.scheduler import Scheduler
from drakit.scheduler.config import SchedulerConfiguration
from drakit.simulate.disks.scratch import scratch_directory
from drakit.simulate.loops import LoopClock, SteppedLoop
from drakit.simulate.machines import Machine, run_node
from drakit.simulate.registries import OpenSockets
from drakit.simulate.troubles import TroubledServer
from drakit.store import MemoryStore

COMPONENTS = ("controllers", "scheduler")


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """What a cluster is like. With `server_only` there are no controllers, no scheduler and no nodes."""

    nodes: int = 1
    profile: str = "gpu"
    cards: int | None = None
    gates: FeatureGates = field(default_factory=FeatureGates.all_on)
    scheduler: SchedulerConfiguration | None = None
    server_only: bool = False
    seed: int = 0


Devices = Mapping[str, Sequence[Device] | Sequence[DevicePool]]
"""By driver."""


@dataclass(frozen=True, slots=True)
class MachinePlan:
    """What a node is like. Without `devices` and `drivers` it has the devices of the plan's profile.

    A driver that is given as a function is made anew for each life of the node; an object lives through reboots.
    """

    devices: Devices | None = None
    drivers: Sequence[Driver | Callable[[], Driver]] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, Any]] = ()
    capacity: Mapping[str, str | int] = field(default_factory=dict)


@cache
def signing_key() -> ec.EllipticCurvePrivateKey:
    """One key for all clusters of the process: tokens of a simulation protect nothing."""
    return ec.generate_private_key(ec.SECP256R1())


def server_settings(gates: FeatureGates, random: Random, *, accounts: bool = True) -> Settings:
    """Those of `drakit up`, with names and uids from the seed. Without `accounts`, pods need no service account."""
    return Settings(
        gates=gates,
        modes=("Node", "RBAC"),
        aggregate_roles=True,
        enable_plugins=("ServiceAccount",) if accounts else (),
        random=random,
        new_uid=lambda: str(UUID(int=random.getrandbits(128), version=4)),
        signing_key=signing_key(),
    )


@dataclass(slots=True)
class RunningNode:
    """A machine, its agent and the task that its processes run in."""

    plan: MachinePlan
    machine: Machine
    agent: NodeAgent
    task: asyncio.Task[None]


class SimulatedCluster:
    """Use `running_cluster`. All methods belong on its loop."""

    def __init__(self, plan: ClusterPlan, server: Server, store: MemoryStore, clock: Clock, directory: Path) -> None:
        self.plan = plan
        self.server = server
        self.store = store
        self.clock = clock
        self.random = Random(plan.seed)
        self.line = TroubledServer(server, clock)
        """What components reach the server by; the test's own client does not meet its troubles."""
        self.client = Client(InProcess(server, ADMIN), clock=clock)
        self.nodes: dict[str, RunningNode] = {}
        self._directory = directory
        self._components: dict[str, asyncio.Task[None]] = {}
        self.scheduler: Scheduler | None = None

    def client_as(self, user: User) -> Client:
        """For a component. What the server warns it of would stand in the output of every test that fails."""
        line = InProcess(self.line, user)
        return Client(line, clock=self.clock, on_warning=lambda _: None, versions=self.client.versions)

    async def start(self) -> None:
        """Everything that the plan has."""
        if self.plan.server_only:
            return
        profile = load_profile(self.plan.profile)
        for each in profile.device_classes():
            await self.client.apply(each, manager="drakit-testing", force=True)
        # One cache for both, as in `drakit up`; one that is started again has its own.
        shared = Informers(self.client_as(CONTROLLER_MANAGER), clock=self.clock, random=self.random)
        for name in COMPONENTS:
            self.start_component(name, shared)
        for number in range(1, self.plan.nodes + 1):
            await self.add_node(f"node-{number}", MachinePlan())

    def start_component(self, name: str, informers: Informers | None = None) -> None:
        """`controllers` or `scheduler`."""
        if name == "scheduler":
            self.scheduler = self._scheduler(informers)
        work = self.scheduler.run() if name == "scheduler" and self.scheduler else self._controllers(informers).run()
        self._components[name] = asyncio.create_task(work, name=name)

    async def stop_component(self, name: str) -> None:
        """It ends in the middle of what it does, as a process that is killed."""
        task = self._components.pop(name)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def _controllers(self, informers: Informers | None) -> Controllers:
        return Controllers(
            self.client_as(CONTROLLER_MANAGER),
            clock=self.clock,
            gates=self.plan.gates,
            random=self.random,
            client_of=lambda account: self.client_as(controller(account)),
            informers=informers,
        )

    def _scheduler(self, informers: Informers | None) -> Scheduler:
        return Scheduler(
            self.client_as(SCHEDULER),
            clock=self.clock,
            gates=self.plan.gates,
            random=self.random,
            config=self.plan.scheduler,
            informers=informers,
            hints=True,
        )

    async def add_node(self, name: str, plan: MachinePlan) -> Machine:
        """Raise ValueError if a node of that name runs."""
        if name in self.nodes:
            raise ValueError(f"there is a node {name} already")
        profile = load_profile(self.plan.profile)
        machine = Machine(
            name,
            self._directory / name,
            clock=self.clock,
            random=self.random,
            gates=self.plan.gates,
            labels={**profile.node_labels, **plan.labels},
            taints=plan.taints,
            capacity=plan.capacity,
            sockets=OpenSockets(),
        )
        devices = plan.devices
        if devices is None and not plan.drivers:
            devices = {profile.driver: profile.device_pools(name, cards=self.plan.cards)}
        for driver, pools in (devices or {}).items():
            machine.install(driver, pools)
        self._start_node(machine, plan)
        return machine

    def _start_node(self, machine: Machine, plan: MachinePlan) -> None:
        given = [each if isinstance(each, Driver) else each() for each in plan.drivers]
        plugins = [(each, machine.make_plugin(each, self.client_as(ADMIN))) for each in machine.hardware]
        plugins += [(each.name, machine.make_plugin(each.name, self.client_as(ADMIN), made=each)) for each in given]
        agent = machine.make_agent(self.client_as(node_agent(machine.name)))
        task = asyncio.create_task(run_node(agent, plugins, machine.sockets), name=machine.name)
        self.nodes[machine.name] = RunningNode(plan, machine, agent, task)

    async def stop_node(self, name: str) -> RunningNode:
        """The machine is off: its agent and drivers are gone, its Node object is not."""
        node = self.nodes.pop(name)
        node.task.cancel()
        await asyncio.gather(node.task, return_exceptions=True)
        return node

    async def restart_node(self, name: str) -> None:
        """Reboot: containers and files in memory are gone, the agent and the drivers come back."""
        node = await self.stop_node(name)
        await node.machine.reboot()
        self._start_node(node.machine, node.plan)

    async def remove_node(self, name: str) -> None:
        """The machine is off and its Node object deleted."""
        await self.stop_node(name)
        await self.client.delete(NODES, name)

    async def stop(self) -> None:
        for name in list(self.nodes):
            await self.stop_node(name)
        for name in list(self._components):
            await self.stop_component(name)

    def failures(self) -> list[BaseException]:
        """What components have ended with, if any has ended."""
        tasks = (*self._components.values(), *(node.task for node in self.nodes.values()))
        ended = [each for each in tasks if each.done()]
        return [error for each in ended if not each.cancelled() and (error := each.exception()) is not None]


@asynccontextmanager
async def running_cluster(
    plan: ClusterPlan, *, accounts: bool | None = None, store: MemoryStore | None = None
) -> AsyncIterator[SimulatedCluster]:
    """A cluster on the running SteppedLoop; inside, everything has settled.

    Pods need a service account (`accounts`) where a controller makes it. A `store` that is given is the caller's.
    """
    loop = asyncio.get_running_loop()
    if not isinstance(loop, SteppedLoop):
        raise TypeError("a simulated cluster runs on a SteppedLoop")
    clock = LoopClock(loop)
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(scratch_directory()))
        if store is None:
            store = await stack.enter_async_context(MemoryStore(clock=clock))
        checks = not plan.server_only if accounts is None else accounts
        settings = server_settings(plan.gates, Random(plan.seed), accounts=checks)
        server = await stack.enter_async_context(await build_server(store, clock=clock, settings=settings))
        made = SimulatedCluster(plan, server, store, clock, directory)
        stack.push_async_callback(made.stop)
        await made.start()
        await loop.settle()
        yield made
