"""Several profiles in one scheduler."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from drakit.api.objects.pods import Pod
from drakit.base.gates import FeatureGates
from drakit.client import CLAIMS, NODES
from drakit.scheduler.config import DynamicResourcesArgs, SchedulerConfiguration, default_configuration
from drakit.scheduler.config.model import PluginSet
from drakit.scheduler.framework import CycleState, NodeInfo, PluginStatus, Rejections
from drakit.scheduler.plugins import MAKERS, Maker
from tests.builders.manifests import pod_group
from tests.builders.podmanifests import by_name, claim, device_class, node, pod, resource_slice
from tests.builders.schedulercluster import on_loop, scheduling
from tests.scheduler.dynamicresources.extended.stage import GPU, asking, message_of, stage
from tests.scheduler.stubborn import NAME, Stubborn, configured


def two_profiles() -> SchedulerConfiguration:
    config = default_configuration(FeatureGates.all_on())
    (first,) = config.profiles
    second = replace(first, scheduler_name="other", args={"DynamicResources": DynamicResourcesArgs(filter_timeout=1.0)})
    return replace(config, profiles=(first, second))


@on_loop
async def test_a_pod_is_placed_by_the_profile_that_it_names_and_told_in_its_name() -> None:
    async with scheduling(controllers=(), config=two_profiles()) as it:
        await it.create(node("a"), pod("p", spec={"schedulerName": "other"}), pod("q"))
        assert [await it.node_of(name) for name in ("p", "q")] == ["a", "a"]
        attempts = "scheduler_schedule_attempts_total"
        assert it.metric(attempts, result="scheduled", profile="other") == 1
        assert it.metric(attempts, result="scheduled", profile="default-scheduler") == 1


@on_loop
async def test_profiles_with_other_arguments_share_what_they_know_of_devices() -> None:
    async with scheduling(controllers=(), config=two_profiles()) as it:
        await it.create(node("node-1"), device_class(), resource_slice("slice", "d0", "d1"))
        for number in range(4):
            await it.client.create(claim(f"c{number}"))
            names = {"schedulerName": "other"} if number % 2 else {}
            await it.client.create(pod(f"p{number}", claims=[by_name(f"c{number}")], spec=names))
        await it.settle()
        held = [each.status.allocation for each in await it.all(CLAIMS) if each.status.allocation]
        assert sorted(result.device for each in held for result in each.devices.results) == ["d0", "d1"]


def one_without_devices(*, at: str = "", first: bool = False) -> SchedulerConfiguration:
    """The profile `plain` does not have DynamicResources: nowhere, or not at one point; it comes first, or last."""
    config = default_configuration(FeatureGates.defaults())
    (whole,) = config.profiles
    plain = replace(whole, scheduler_name="plain")
    if at:
        plain = replace(plain, points={at: PluginSet(disabled=frozenset({"DynamicResources"}))})
    else:
        kept = tuple(each for each in whole.multi_point.enabled if each.name != "DynamicResources")
        plain = replace(plain, multi_point=replace(whole.multi_point, enabled=kept))
    return replace(config, profiles=(plain, whole) if first else (whole, plain))


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("at", ["", "filter", "preBind"])
@on_loop
async def test_a_profile_that_allocates_no_devices_asks_the_nodes_for_extended_resources(at: str, first: bool) -> None:
    async with stage("d0", config=one_without_devices(at=at, first=first)) as it:
        plain = asking("p", gpu=1)
        plain["spec"]["schedulerName"] = "plain"
        await it.create(plain, asking("q", gpu=1))
        assert await it.node_of("p") == ""
        assert (await message_of(it, "p")).startswith(f"0/1 nodes are available: 1 Insufficient {GPU}.")
        assert await it.node_of("q") == "node-1"
        await it.create(node("node-2", room={GPU: "1"}))
        await it.run_for(15)
        assert await it.node_of("p") == "node-2"


@pytest.mark.parametrize("first", [False, True])
@on_loop
async def test_a_pod_is_woken_by_what_helps_in_its_own_profile(first: bool) -> None:
    """To the other profile, the node does not fit however large it is: it has no such resource."""
    async with stage("d0", config=one_without_devices(first=first)) as it:
        large = asking("p", gpu=1)
        large["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "10", GPU: "1"}
        await it.create(large)
        assert (await message_of(it, "p")).startswith("0/1 nodes are available: 1 Insufficient cpu.")
        await it.client.patch_status(await it.client.get(NODES, "node-1"), {"allocatable": {"cpu": "12"}})
        await it.run_for(15)
        assert await it.node_of("p") == "node-1"


class Counting(Stubborn):
    """Remembers how many nodes it had to compare."""

    def score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Sequence[int]:
        self.compared = len(nodes)
        return super().score(state, pod, nodes)


@pytest.mark.parametrize(("own", "compared"), [(0, 100), (70, 105), (100, 150)])
@on_loop
async def test_a_profile_has_its_own_word_on_how_many_nodes_are_enough_also_when_it_is_zero(
    own: int, compared: int
) -> None:
    plugin = Counting()
    options = dict(plugin.options)
    (profile,) = options["config"].profiles
    profiles = (replace(profile, percentage_of_nodes_to_score=own),)
    options["config"] = replace(options["config"], percentage_of_nodes_to_score=90, profiles=profiles)
    async with scheduling(controllers=(), **options) as it:
        await it.create(*(node(f"n{number}") for number in range(150)), pod("p"))
        assert plugin.compared == compared


class Unsaid:
    """Refuses everything, and does not say what could help."""

    name = NAME

    def __init__(self) -> None:
        self.asked = 0

    def filter(self, _state: CycleState, _pod: Pod, nodes: Sequence[NodeInfo]) -> Rejections:
        self.asked += 1
        return {each.name: PluginStatus.unschedulable("no") for each in nodes}


@on_loop
async def test_a_plugin_that_does_not_say_what_could_help_hopes_for_kinds_that_no_other_plugin_follows() -> None:
    plugin, config = Unsaid(), configured()
    (profile,) = config.profiles
    others = tuple(use for use in profile.multi_point.enabled if use.name not in ("DynamicResources", "GangScheduling"))
    config = replace(config, profiles=(replace(profile, multi_point=PluginSet(others)),))
    makers: dict[str, Maker] = {**MAKERS, NAME: lambda _, __: plugin}
    async with scheduling(controllers=(), config=config, makers=makers) as it:
        await it.create(node("a"), pod("p"))
        await it.run_for(11)
        for each in (claim("c"), resource_slice("s", "d0"), pod_group("g", [])):
            before = plugin.asked
            await it.create(each)
            await it.run_for(11)
            assert plugin.asked == before + 1, each["kind"]
