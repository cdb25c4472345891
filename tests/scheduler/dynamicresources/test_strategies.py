"""Nodes are compared by the devices that stay free, when a strategy for devices is configured."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from drakit.scheduler.config import SchedulerConfiguration, load_configuration
from drakit.scheduler.dynamicresources.points.score import score_left
from tests.builders.manifests import claim
from tests.builders.podmanifests import device_class
from tests.builders.schedulercluster import SchedulingCluster, on_loop, scheduling
from tests.scheduler.dynamicresources.scenes import GATES, by_name, exactly, first_of, node, pod, resource_slice, user


def strategy(name: str) -> SchedulerConfiguration:
    text = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: DynamicResources
    args: {{deviceStrategy: {name}}}
"""
    return load_configuration(text, gates=GATES)


@asynccontextmanager
async def two_nodes(
    config: SchedulerConfiguration | None, few: int = 2, many: int = 4
) -> AsyncIterator[SchedulingCluster]:
    async with scheduling(gates=GATES, config=config) as it:
        await it.create(device_class(), node("few"), node("many"))
        for name, count in (("few", few), ("many", many)):
            await it.create(resource_slice(name, *(f"d{each}" for each in range(count)), node=name, pool=name))
        yield it


@pytest.mark.parametrize(("name", "places"), [("binpack", ["few", "few", "many"]), ("spread", ["many", "many"])])
def test_pods_are_packed_or_spread_by_free_devices(name: str, places: list[str]) -> None:
    async def run() -> None:
        async with two_nodes(strategy(name)) as it:
            for number, place in enumerate(places):
                await it.create(claim(f"c{number}"), user(f"p{number}", f"c{number}"))
                assert await it.node_of(f"p{number}") == place

    on_loop(run)()


@on_loop
async def test_without_a_strategy_free_devices_do_not_count() -> None:
    """The node with more devices has less room."""
    async with scheduling(gates=GATES) as it:
        await it.create(device_class(), node("roomy"), node("tight", room={"cpu": "2", "memory": "4Gi"}))
        await it.create(resource_slice("roomy", "d0", node="roomy", pool="roomy"))
        await it.create(resource_slice("tight", "d0", "d1", "d2", node="tight", pool="tight"))
        await it.create(claim("c"), pod("p", cpu="1", claims=[by_name("c")]))
        assert await it.node_of("p") == "roomy"


@on_loop
async def test_a_pod_that_would_rather_have_something_else_gets_the_mean_of_both_marks() -> None:
    """Two devices are on the node with many only (87 to 100 scores); the other is the fuller one (100 to 0)."""
    async with two_nodes(strategy("binpack"), few=1, many=8) as it:
        await it.create(claim("c", first_of("r", two=2, one=1)), user("p", "c"))
        assert await it.node_of("p") == "few"


@on_loop
async def test_extended_resources_count_like_claims() -> None:
    async with two_nodes(strategy("spread")) as it:
        klass = device_class("named")
        klass["spec"] = {"extendedResourceName": "example.com/gpu"}
        await it.create(klass)
        made = pod("p")
        made["spec"]["containers"][0]["resources"] = {
            "requests": {"example.com/gpu": "1"},
            "limits": {"example.com/gpu": "1"},
        }
        await it.create(made)
        assert await it.node_of("p") == "many"


@on_loop
async def test_a_pod_that_needs_all_that_is_left_may_have_it() -> None:
    async with two_nodes(strategy("spread")) as it:
        await it.create(claim("c", exactly(count=4)), user("p", "c"))
        assert await it.node_of("p") == "many"


def test_marks_are_in_proportion_to_the_node_with_most() -> None:
    assert score_left([0, 1, 2, 4], "spread") == [0, 25, 50, 100]
    assert score_left([0, 1, 2, 4], "binpack") == [100, 75, 50, 0]
    assert score_left([0, 0], "binpack") == [100, 100]
    assert score_left([0, 0], "spread") == [0, 0]
