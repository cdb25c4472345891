"""Drivers and scheduler together: pods wait for what a driver has to do first, and get what it published."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from drakit.api import ResourceClaim, find_condition, to_wire
from drakit.apiserver.auth.identities import account
from drakit.base.clock import RealClock
from drakit.client import CLAIMS, SLICES, Client, InProcess
from drakit.driverkit import ClaimRef, Driver, KubeletPlugin, PluginSettings
from drakit.drivers import cpu, fabric, load_profile, nic
from tests.builders.podmanifests import by_name, node, pod
from tests.builders.schedulercluster import SchedulingCluster, on_loop, scheduling
from tests.drivers.rights import rights_of

Make = Callable[[Path], Driver]
ZONE: dict[str, Any] = {"fabric.example.com/zone": "zone-a"}
_TURNS = 1000
_PAUSE = 0.02


class DrivenCluster:
    """A cluster whose nodes have a driver; each acts with the rights of its manifest, on its node."""

    def __init__(self, it: SchedulingCluster, directory: Path, plugins: dict[str, KubeletPlugin]) -> None:
        self.it = it
        self.hardware = directory / "hardware"
        self.plugins = plugins

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        """Drivers live on real time, the scheduler does not: give both their turn."""
        for _ in range(_TURNS):
            await self.it.settle()
            if await holds():
                return
            await asyncio.sleep(_PAUSE)
        raise AssertionError("it did not come about")

    async def claim(self, name: str) -> ResourceClaim:
        found: ResourceClaim = await self.it.find(CLAIMS, name)
        return found

    async def until_bound(self, name: str) -> str:
        async def is_bound() -> bool:
            return bool(await self.it.node_of(name))

        await self.until(is_bound)
        return await self.it.node_of(name)


@asynccontextmanager
async def driven(name: str, make: Make, nodes: Sequence[str] = ("node-1",)) -> AsyncIterator[DrivenCluster]:
    profile = load_profile(name)
    with tempfile.TemporaryDirectory(prefix="dr-") as made:
        directory = Path(made)
        async with scheduling(controllers=()) as it, AsyncExitStack() as stack:
            await it.create(*yaml.safe_load_all(rights_of(name).read_text()))
            await it.create(*(node(each, **ZONE) for each in nodes), *map(to_wire, profile.device_classes()))
            plugins = {}
            for each in nodes:
                client = Client(InProcess(it.server, account("drakit-drivers", name, node=each)), clock=RealClock())
                settings = PluginSettings(
                    node_name=each,
                    plugin_dir=directory / each / "p",
                    registry_dir=directory / each / "r",
                    cdi_dir=directory / each / "cdi",
                    grace=0.1,
                )
                settings.registry_dir.mkdir(parents=True)
                plugin = KubeletPlugin(make(directory / "hardware"), client, settings)
                plugins[each] = await stack.enter_async_context(plugin.running())
            cluster = DrivenCluster(it, directory, plugins)
            await cluster.until(lambda: _published(it))
            await it.create(*map(to_wire, profile.example_claims()))
            yield cluster


async def _published(it: SchedulingCluster) -> bool:
    return bool(await it.all(SLICES))


def ref_of(claim: ResourceClaim) -> ClaimRef:
    return ClaimRef(namespace=claim.metadata.namespace, name=claim.metadata.name, uid=claim.metadata.uid)


def makers(kind: Callable[..., Driver]) -> Make:
    return lambda directory: kind(directory=str(directory))


@on_loop
async def test_a_pod_is_bound_when_its_interface_is_attached_and_its_claim_tells_the_address() -> None:
    async with driven("nic", makers(nic.NicDriver)) as cluster:
        await cluster.it.create(pod("web", claims=[by_name("ten-gigabit")]))
        assert await cluster.until_bound("web") == "node-1"
        claim = await cluster.claim("ten-gigabit")
        attached = find_condition(claim.status.devices[0].conditions, "net.example.com/attached")
        assert attached is not None
        assert attached.status == "True"
        answers = await cluster.plugins["node-1"].prepare([ref_of(claim)])
        assert not answers[claim.metadata.uid].error

        async def has_address() -> bool:
            network = (await cluster.claim("ten-gigabit")).status.devices[0].network_data
            return network is not None and network.ips == ("10.88.0.2/16",)

        await cluster.until(has_address)


@on_loop
async def test_a_pod_whose_interface_cannot_be_attached_is_told_and_tried_again() -> None:
    async with driven("nic", makers(nic.NicDriver)) as cluster:
        cluster.hardware.mkdir()
        (cluster.hardware / "attach-failed").write_text("nic-0 nic-1")
        await cluster.it.create(pod("web", claims=[by_name("ten-gigabit")]))

        async def is_told() -> bool:
            return bool(await cluster.it.told("web", "FailedScheduling"))

        await cluster.until(is_told)
        assert not await cluster.it.node_of("web")
        (cluster.hardware / "attach-failed").unlink()

        async def is_bound() -> bool:
            await cluster.it.run_for(10.0)  # the backoff of the scheduler
            return bool(await cluster.it.node_of("web"))

        await cluster.until(is_bound)


@on_loop
async def test_an_accelerator_of_the_fabric_is_attached_for_the_node_that_was_chosen() -> None:
    async with driven("fabric", makers(fabric.FabricDriver), ["node-1", "node-2"]) as cluster:
        await cluster.it.create(pod("train", claims=[by_name("from-the-fabric")]))
        chosen = await cluster.until_bound("train")
        claim = await cluster.claim("from-the-fabric")
        assert (cluster.hardware / "ports" / "accelerator-0").read_text() == claim.metadata.uid
        answers = await cluster.plugins[chosen].prepare([ref_of(claim)])
        assert not answers[claim.metadata.uid].error


@on_loop
async def test_cpus_of_a_claim_count_as_the_nodes_own() -> None:
    async with driven("cpu", makers(cpu.CpuDriver)) as cluster:
        await cluster.it.create(pod("pinned", claims=[by_name("ten-of-one-node")]))
        # The node has 8 cpus to give: ten are more, wherever they are asked for.
        assert not await cluster.it.node_of("pinned")
        (message, *_) = await cluster.it.told("pinned", "FailedScheduling")
        assert "Insufficient cpu" in message
