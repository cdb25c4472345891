"""Which node a pod gets when several have what it asks for."""

from __future__ import annotations

import json

import pytest

from drakit.scheduler.config import load_configuration
from tests.builders.podmanifests import node, resource_slice
from tests.builders.schedulercluster import SchedulingCluster, on_loop
from tests.scheduler.dynamicresources.extended.stage import GPU, asking, plugin_node, stage


def configuration(strategy: str) -> str:
    scoring = {"type": strategy, "resources": [{"name": GPU, "weight": 1}]}
    fit = {"name": "NodeResourcesFit", "args": {"scoringStrategy": scoring}}
    alone = {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit", "weight": 1}]}
    profile = {"plugins": {"score": alone}, "pluginConfig": [fit]}
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return json.dumps({**kind, "profiles": [profile]})


async def place(it: SchedulingCluster, count: int) -> list[str]:
    for number in range(count):
        await it.create(asking(f"p{number}", gpu=1))
    return sorted([await it.node_of(f"p{number}") for number in range(count)])


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("MostAllocated", ["node-1", "node-1", "node-1"]),
        ("LeastAllocated", ["node-2", "node-2", "node-2"]),
    ],
)
def test_nodes_are_compared_by_their_devices_where_the_configuration_names_the_resource(
    strategy: str, expected: list[str]
) -> None:
    @on_loop
    async def run() -> None:
        devices = [f"d{number}" for number in range(4)]
        async with stage(*devices, start=False) as it:
            more = [f"e{number}" for number in range(16)]
            await it.create(node("node-2"), resource_slice("s2", *more, pool="p2", node="node-2"))
            await it.start_scheduler(config=load_configuration(configuration(strategy)))
            assert await place(it, 3) == expected

    run()


@on_loop
async def test_devices_and_device_plugins_compare() -> None:
    async with stage("d0", "d1", start=False) as it:
        await it.create(plugin_node("plugin", gpu="8"))
        await it.start_scheduler(config=load_configuration(configuration("LeastAllocated")))
        assert await place(it, 3) == ["plugin"] * 3
