"""A simulated machine: what stays when its processes end, and how those are made.

In:  a node's name, capacity, labels, pools of devices per driver.
Out: the real agent on the simulated runtime, and the real driver kit on simulated hardware.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextvars import Context, copy_context
from dataclasses import replace
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any

from prometheus_client import CollectorRegistry

from drakit.api import Device
from drakit.base.clock import Clock
from drakit.base.gates import FeatureGates
from drakit.base.quantity import Quantity
from drakit.client import Client
from drakit.driverkit import DevicePool, Driver, KubeletPlugin, PluginSettings
from drakit.nodeagent.agent import NodeAgent
from drakit.nodeagent.node.facts import MachineFacts
from drakit.nodeagent.runtimes.contract import ContainerState
from drakit.nodeagent.runtimes.simulated import SimulatedRuntime
from drakit.nodeagent.settings import AgentPaths, AgentSettings
from drakit.simulate.disks.files import DiskFiles
from drakit.simulate.hardware import Hardware, HardwareDriver
from drakit.simulate.links import Carry, NodeSockets, carry_at_once

CAPACITY = {"cpu": "32", "memory": "128Gi", "ephemeral-storage": "500Gi", "pods": "110"}
_PLACES = Path("/machine")
"""Paths of the driver's files: they are in memory."""


class LastingRuntime(SimulatedRuntime):
    """A container runtime that is a process of its own: containers go on when the agent ends."""

    def __init__(self, *, clock: Clock, random: Random, context: Context | None = None) -> None:
        super().__init__(clock=clock, new_id=lambda: f"{random.getrandbits(64):016x}")
        self._context = context or copy_context()
        self.on_start: Callable[[str, str], None] = lambda _pod, _container: None
        """Told of the pod's uid and the container's name before each start."""

    async def start_container(self, container_id: str) -> None:
        info = self._container(container_id).info
        self.on_start(info.pod.uid, info.name)
        await super().start_container(container_id)

    def running(self, pod_uid: str, name: str) -> int:
        """How many containers of that name the pod has running."""
        found = [each.info for each in self._containers.values()]
        return sum((each.pod.uid, each.name, each.state) == (pod_uid, name, ContainerState.RUNNING) for each in found)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The agent has left; the runtime has not."""

    def _end_after(self, container: Any, seconds: float, exit_code: int) -> None:
        self._context.copy().run(super()._end_after, container, seconds, exit_code)

    async def power_off(self) -> None:
        """Everything that ran is gone."""
        await super().__aexit__(None, None, None)


class Machine:
    """One node's machine. `hardware` has the devices by driver."""

    def __init__(
        self,
        name: str,
        directory: Path,
        *,
        clock: Clock,
        random: Random,
        gates: FeatureGates,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Mapping[str, Any]] = (),
        capacity: Mapping[str, str | int] | None = None,
        carry: Carry = carry_at_once,
        context: Context | None = None,
        sockets: NodeSockets | None = None,
    ) -> None:
        self.name = name
        self.clock = clock
        self.random = random
        self.gates = gates
        self.labels = dict(labels or {})
        self.taints = tuple(taints)
        self.capacity = {each: Quantity.parse(str(amount)) for each, amount in {**CAPACITY, **(capacity or {})}.items()}
        self.directory = directory
        self.boot = 1
        self.hardware: dict[str, Hardware] = {}
        self.files = DiskFiles()
        self.sockets = sockets or NodeSockets(carry)
        self._context = context
        self._on_start: Callable[[str, str], None] | None = None
        self.runtime = self._new_runtime()

    def _new_runtime(self) -> LastingRuntime:
        made = LastingRuntime(clock=self.clock, random=self.random, context=self._context)
        if self._on_start is not None:
            made.on_start = self._on_start
        return made

    def watch_starts(self, call: Callable[[str, str], None]) -> None:
        """Tell of each start of a container, also after a reboot: the pod's uid, the container's name."""
        self._on_start = self.runtime.on_start = call

    def install(self, driver: str, devices: Sequence[Device] | Sequence[DevicePool]) -> Hardware:
        """Put devices of a driver in; a pool without a name is that of the node."""
        pools = [each if isinstance(each, DevicePool) else DevicePool(devices=(each,)) for each in devices]
        if pools and isinstance(devices[0], Device):
            pools = [DevicePool(devices=tuple(each for each in devices if isinstance(each, Device)))]
        named = [each if each.name else _named(each, self.name) for each in pools]
        if driver in self.hardware:
            self.hardware[driver].publish(*named)
        else:
            self.hardware[driver] = Hardware(driver, named)
        return self.hardware[driver]

    def make_agent(self, client: Client, *, clock: Clock | None = None) -> NodeAgent:
        settings = AgentSettings(
            node=self.name,
            paths=replace(AgentPaths.below(self.directory), pod_resources=None),
            machine=MachineFacts(self.capacity, hostname=self.name),
            gates=self.gates,
            labels=self.labels,
            taints=self.taints,
            serves_device_plugins=False,
        )
        return NodeAgent(
            client,
            self.runtime,
            settings,
            clock=clock or self.clock,
            dialer=self.sockets,
            directory=self.sockets,
            registry=CollectorRegistry(),
            random=self.random,
            flush=lambda _: None,  # the directory of a simulation need not survive this machine
        )

    def make_plugin(
        self, driver: str, client: Client, *, instance: str = "", made: Driver | None = None
    ) -> KubeletPlugin:
        """A driver of this machine in its own life: that of the hardware, or one that is given."""
        settings = PluginSettings(
            node_name=self.name,
            plugin_dir=_PLACES / "plugins",
            registry_dir=_PLACES / "registry",
            cdi_dir=_PLACES / "cdi",
            instance=instance,
        )
        return KubeletPlugin(
            made or HardwareDriver(self.hardware[driver], instance),
            client,
            settings,
            clock=self.clock,
            files=self.files,
            boot_id=f"boot-{self.boot}",
            random=self.random,
        )

    async def reboot(self) -> None:
        """Power goes and comes: containers, uses of devices, unflushed files and files in memory are gone."""
        await self.runtime.power_off()
        self.runtime = self._new_runtime()
        self.files.lose_power()
        self.files.forget_below(_PLACES / "cdi")
        for each in self.hardware.values():
            each.power_off()
        self.boot += 1


async def run_node(agent: NodeAgent, plugins: Sequence[tuple[str, KubeletPlugin]], sockets: NodeSockets) -> None:
    """The agent, then the drivers, until cancelled: an agent that starts deletes the slices of its node first."""
    running = asyncio.create_task(agent.run(), name=f"agent {agent.settings.node}")
    beside: list[asyncio.Task[None]] = []
    try:
        await asyncio.wait((running, ready := asyncio.ensure_future(agent.wait_ready())), return_when="FIRST_COMPLETED")
        ready.cancel()
        beside = [asyncio.create_task(run_plugin(path, each, sockets)) for path, each in plugins]
        await running
    finally:
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
        await agent.stop()
        await asyncio.gather(running, return_exceptions=True)
        await sockets.close()


async def run_plugin(path: str, plugin: KubeletPlugin, sockets: NodeSockets, process: str = "") -> None:
    """Serve a driver until cancelled; then its socket goes."""
    try:
        async with plugin.running(sockets=False):
            sockets.serve(path, plugin, process)
            await asyncio.Event().wait()
    finally:
        sockets.remove(path)


def _named(pool: DevicePool, name: str) -> DevicePool:
    return DevicePool(
        name=name,
        devices=pool.devices,
        shared_counters=pool.shared_counters,
        node_selector=pool.node_selector,
        all_nodes=pool.all_nodes,
    )
