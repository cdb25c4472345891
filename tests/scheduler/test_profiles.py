"""Several profiles in one scheduler."""

from __future__ import annotations

from msgspec.structs import replace

from drakit.base.gates import FeatureGates
from drakit.client import CLAIMS
from drakit.scheduler.config import DynamicResourcesArgs, SchedulerConfiguration, default_configuration
from tests.scheduler.cluster import on_loop, scheduling
from tests.scheduler.manifests import by_name, claim, device_class, node, pod, resource_slice


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
        assert it.figure(attempts, result="scheduled", profile="other") == 1
        assert it.figure(attempts, result="scheduled", profile="default-scheduler") == 1


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
