"""Where a pod would rather be; how long a node may be thought about; one ledger for all profiles; why not."""

from __future__ import annotations

from typing import Any

import msgspec

from drakit.api import Node, Pod, from_plain
from drakit.base.clock import FakeClock
from drakit.base.gates import FeatureGates
from drakit.scheduler.config import default_configuration
from drakit.scheduler.config.args import DynamicResourcesArgs
from drakit.scheduler.dynamicresources import DynamicResources, PluginContext, explain
from drakit.scheduler.framework import NodeInfo
from tests.builders.manifests import claim
from tests.builders.podmanifests import node, resource_slice
from tests.builders.schedulercluster import SchedulingCluster, on_loop
from tests.scheduler.dynamicresources.choosing import Plugins
from tests.scheduler.dynamicresources.scenes import (
    GATES,
    Plain,
    bare_slice,
    devices_of,
    exactly,
    first_of,
    message_of,
    refused,
    scene,
    user,
)


@on_loop
async def test_a_node_with_an_earlier_alternative_is_preferred() -> None:
    async with scene("d0") as it:
        await it.create(node("node-2"), resource_slice("s2", "a", "b", node="node-2", pool="two"))
        await it.create(node("node-3"), resource_slice("s3", "a", node="node-3", pool="three"))
        await it.create(claim("c", first_of("r", two=2, one=1)), user("p"))
        assert await it.node_of("p") == "node-2"
        await it.create(claim("d", first_of("r", two=2, one=1)), user("q", "d"))
        assert await it.node_of("q") in ("node-1", "node-3")
        assert len(await devices_of(it, "d")) == 1


def read_node(name: str) -> NodeInfo:
    return NodeInfo(from_plain(Node, node(name)))


class HurriedClock(FakeClock):
    """Time goes on whenever somebody looks."""

    step = 0.0

    def monotonic(self) -> float:
        self.advance(self.step)
        return super().monotonic()


NUMA, ROOT = "gpu.example.com/numa", "gpu.example.com/root"
LISTS = {"DRAListTypeAttributes": True}


def hard_claim() -> Plain:
    """It takes a while to see that this cannot be."""
    constraints = [{"requests": ["r"], "matchAttribute": each} for each in (NUMA, ROOT)]
    return claim("c", exactly(count=7), constraints=constraints)


def hard_devices() -> list[Plain]:
    return [
        {
            "name": f"d-{one}-{two}",
            "attributes": {"numa": {"int": (one + two) % 2}, "root": {"strings": [f"r{one}", f"r{two}"]}},
        }
        for one in range(12)
        for two in range(one)
    ]


async def attempt_hard_claim(gates: FeatureGates, **args: Any) -> str:
    plugins = Plugins(**args)
    async with scene(gates=gates, makers=plugins.makers) as it:
        devices = hard_devices()
        slices = [bare_slice("s", devices[:40]), bare_slice("t", devices[40:])]
        for each in slices:
            each["spec"]["pool"]["resourceSliceCount"] = 2
        await it.create(*slices)
        [plugin] = plugins.made
        clock = HurriedClock()
        clock.step = 20.0
        plugin.context.handle.clock = clock
        plugin.context = PluginContext(plugin.context.handle, DynamicResourcesArgs(**args))
        await it.create(hard_claim(), user("p"))
        return await message_of(it, "p")


@on_loop
async def test_a_node_that_takes_too_long_is_left_out() -> None:
    told = await attempt_hard_claim(FeatureGates.of(LISTS))
    assert told.startswith(refused("1 timed out trying to allocate devices"))


@on_loop
async def test_without_the_gate_a_node_may_take_as_long_as_it_takes() -> None:
    told = await attempt_hard_claim(FeatureGates.of({**LISTS, "DRASchedulerFilterTimeout": False}))
    assert told.startswith(refused("1 cannot allocate all claims"))


@on_loop
async def test_a_timeout_of_zero_is_none() -> None:
    told = await attempt_hard_claim(FeatureGates.of(LISTS), filter_timeout=0.0)
    assert told.startswith(refused("1 cannot allocate all claims"))


@on_loop
async def test_profiles_of_one_scheduler_have_one_ledger() -> None:
    config = default_configuration(GATES)
    [profile] = config.profiles
    args = {"DynamicResources": DynamicResourcesArgs(binding_timeout=60.0)}
    profiles = (profile, msgspec.structs.replace(profile, scheduler_name="other", args=args))
    config = msgspec.structs.replace(config, profiles=profiles)
    plugins = Plugins()
    async with scene("d0", "d1", config=config, makers=plugins.makers) as it:
        assert len(plugins.made) == 2
        for number in range(4):
            await it.client.create(claim(f"c{number}"))
            spec = {"schedulerName": "other" if number % 2 else "default-scheduler"}
            await it.client.create(user(f"p{number}", f"c{number}", spec=spec))
        await it.settle()
        held = [device for number in range(4) for device in await devices_of(it, f"c{number}")]
        assert sorted(held) == ["d0", "d1"]


async def explained(it: SchedulingCluster, plugin: DynamicResources, name: str = "p") -> Any:
    pod: Pod = await it.pod(name)
    return explain(plugin.context, pod, read_node("node-1"))


@on_loop
async def test_why_a_pod_does_not_fit_is_told_device_by_device() -> None:
    plugins = Plugins()
    async with scene("d0", makers=plugins.makers) as it:
        [plugin] = plugins.made
        await it.create(claim("a"), user("q", "a"), user("p", "b"))
        assert "could not find" in (await explained(it, plugin)).message
        await it.create(claim("b"))
        told = await explained(it, plugin)
        assert not told.fits
        assert told.reasons is not None
        [asked] = told.reasons.claims[0].requests
        assert [each.detail for each in asked.refusals] == ["in use by claim default/a"]
        await it.create(resource_slice("more", "d1", pool="more"))
        assert (await explained(it, plugin)).fits


@on_loop
async def test_asking_why_takes_nothing() -> None:
    plugins = Plugins()
    async with scene("d0", makers=plugins.makers) as it:
        [plugin] = plugins.made
        await it.create(claim(), user("p", spec={"schedulingGates": [{"name": "wait"}]}))
        assert (await explained(it, plugin)).fits
        assert plugin.context.inventory.ledger.use(("gpu.example.com", "pool")).devices == {}
