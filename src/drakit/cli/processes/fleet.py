"""The simulated nodes of `drakit up --cluster`: thousands of agents in this process, with nothing behind them.

In:  an inventory of nodes; a directory for their files.
Out: components. Each node has the real agent, on a runtime that runs nothing and drivers that answer at once; what the
     drivers would publish is written for them, and written again when it is deleted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path

from prometheus_client import CollectorRegistry

from drakit.api import ResourceSlice
from drakit.api.codec.documents import to_wire
from drakit.api.objects.plain import Plain
from drakit.apiserver.auth.identities import ADMIN, node_agent
from drakit.cli.processes.components import Component, Embedded, Surroundings
from drakit.cli.processes.nodes import Installation
from drakit.client import SLICES, AlreadyExists, Client
from drakit.drivers.inventory import ClusterInventory, SimulatedNode
from drakit.nodeagent.agent import NodeAgent
from drakit.nodeagent.node.facts import MachineFacts
from drakit.nodeagent.plugins.contract import (
    V1,
    ClaimIdentity,
    DeviceHealthReport,
    PluginInfo,
    PrepareAnswer,
    PrepareAnswers,
)
from drakit.nodeagent.plugins.drivers import PLUGIN_TYPE
from drakit.nodeagent.pods.feed import SharedPodFeeds
from drakit.nodeagent.runtimes.simulated import SimulatedRuntime
from drakit.nodeagent.settings import AgentPaths, AgentSettings

_TOGETHER = 50
"""Nodes that start at the same time: more would only keep everybody else waiting."""

Progress = Callable[[int, int], None]
"""Told how many nodes of how many are up."""


def fleet_components(inventory: ClusterInventory, directory: Path, progress: Progress) -> list[Component]:
    """The classes of the inventory's profiles, and all of its nodes."""
    if not inventory.size:
        return []
    nodes = inventory.simulated()
    shared = {each.metadata.name: each for node in nodes for each in node.slices if not each.spec.node_name}
    manifests: list[Plain] = [dict(to_wire(each)) for each in (*inventory.device_classes(), *shared.values())]

    def make(client: Client, around: Surroundings) -> Embedded:
        return Fleet(nodes, directory, client, around, progress)

    return [
        Component("classes", ADMIN, lambda client, _: Installation(client, manifests)),
        Component("fleet", ADMIN, make),
    ]


class InstantDriver:
    """A driver at the agent's gRPC seam: it has registered, and whatever it is asked has worked."""

    connected = True

    def __init__(self, name: str) -> None:
        self._name = name

    async def get_info(self) -> PluginInfo:
        return PluginInfo(PLUGIN_TYPE, self._name, self._name, (V1,))

    async def notify(self, *, registered: bool, error: str) -> None:
        del registered, error

    def on_change(self, call: Callable[[], None]) -> None:
        del call

    async def prepare(self, service: str, claims: Sequence[ClaimIdentity], *, limit: float) -> PrepareAnswers:
        del service, limit
        return {each.uid: PrepareAnswer() for each in claims}

    async def unprepare(self, service: str, claims: Sequence[ClaimIdentity], *, limit: float) -> Mapping[str, str]:
        del service, limit
        return {each.uid: "" for each in claims}

    async def watch_health(self) -> AsyncIterator[Sequence[DeviceHealthReport]]:
        await asyncio.Event().wait()
        yield []

    async def close(self) -> None:
        return


class InstantDialer:
    """Sockets are named after their drivers."""

    def registration(self, path: str) -> InstantDriver:
        return InstantDriver(path)

    def driver(self, endpoint: str) -> InstantDriver:
        return InstantDriver(endpoint)


class FixedSockets:
    """A registry in which the same drivers have always been."""

    def __init__(self, drivers: Sequence[str]) -> None:
        self._drivers = drivers

    def sockets(self) -> Mapping[str, tuple[int, int]]:
        return dict.fromkeys(self._drivers, (1, 1))

    async def changed(self) -> None:
        await asyncio.Event().wait()


class Fleet:
    """All simulated nodes. A node that stops forgets its containers, as a machine that is switched off does."""

    def __init__(
        self,
        nodes: Sequence[SimulatedNode],
        directory: Path,
        client: Client,
        around: Surroundings,
        progress: Progress,
    ) -> None:
        self._nodes = nodes
        self._directory = directory
        self._around = around
        self._progress = progress
        self._feeds = SharedPodFeeds(client)
        self._publication = FixedSlices(client, [each for node in nodes for each in node.slices if each.spec.node_name])
        self._ready = asyncio.Event()
        self._stopped = asyncio.Event()

    async def run(self) -> None:
        async with AsyncExitStack() as stack:
            feeding = asyncio.create_task(self._feeds.run(), name="pods of simulated nodes")
            stack.push_async_callback(_end, feeding)
            agents: list[NodeAgent] = []
            tasks: list[asyncio.Task[None]] = []
            # Pushed while both lists are empty: agents that start later are stopped too, also after a failure.
            stack.push_async_callback(self._stop, agents, tasks)
            stack.push_async_callback(self._publication.stop)
            informer = self._around.informers.of(SLICES)
            stack.callback(informer.subscribe(self._publication.on_slice))
            for batch in _batches(self._nodes):
                agents += [self._agent(each) for each in batch]
                tasks += [asyncio.create_task(each.run()) for each in agents[-len(batch) :]]
                await asyncio.gather(*(each.wait_ready() for each in agents[-len(batch) :]))
                # After the agents: one that starts deletes the slices of its node.
                await asyncio.gather(*(self._publication.create(each) for node in batch for each in node.slices))
                self._progress(len(agents), len(self._nodes))
                if self._stopped.is_set():
                    return
            self._ready.set()
            await self._stopped.wait()

    async def wait_ready(self) -> None:
        await self._ready.wait()

    async def stop(self) -> None:
        self._stopped.set()

    def _agent(self, node: SimulatedNode) -> NodeAgent:
        clock = self._around.clock
        settings = AgentSettings(
            node=node.name,
            paths=replace(AgentPaths.below(self._directory / node.name), pod_resources=None),
            machine=MachineFacts(node.capacity, hostname=node.name),
            gates=self._around.gates,
            labels=node.labels,
            taints=node.taints,
            serves_device_plugins=False,
        )
        return NodeAgent(
            self._around.client(node_agent(node.name)),
            SimulatedRuntime(clock=clock),
            settings,
            clock=clock,
            dialer=InstantDialer(),
            directory=FixedSockets(node.drivers),
            registry=CollectorRegistry(),
            pods=self._feeds.of(node.name),
            flush=lambda _: None,  # what is simulated is not worth waiting for a disk
        )

    @staticmethod
    async def _stop(agents: Sequence[NodeAgent], tasks: Sequence[asyncio.Task[None]]) -> None:
        await asyncio.gather(*(each.stop() for each in agents))
        await asyncio.gather(*tasks)


class FixedSlices:
    """Slices that are always there: an agent that starts deletes those of its node, and drivers publish them again."""

    def __init__(self, client: Client, slices: Sequence[ResourceSlice]) -> None:
        self._client = client
        self._wanted = {each.metadata.name: each for each in slices}
        self._tasks: set[asyncio.Task[None]] = set()

    async def create(self, wanted: ResourceSlice) -> None:
        if wanted.metadata.name in self._wanted:
            # One of an earlier run is deleted by the agent in a moment, and then comes back as it should be.
            with suppress(AlreadyExists):
                await self._client.create(wanted)

    def on_slice(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        wanted = self._wanted.get(old.metadata.name) if old is not None and new is None else None
        if wanted is not None:
            task = asyncio.create_task(self.create(wanted))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        # Emptied first: deletions from now on must not bring slices back.
        self._wanted = {}
        await _end(*self._tasks)


def _batches(nodes: Sequence[SimulatedNode]) -> Iterator[Sequence[SimulatedNode]]:
    for first in range(0, len(nodes), _TOGETHER):
        yield nodes[first : first + _TOGETHER]


async def _end(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
