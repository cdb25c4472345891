"""Plugins that remember answers give those that plugins without a memory give, whatever happened in between."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from drakit.api.objects.pods import Pod
from drakit.scheduler.cache import SchedulerCache
from drakit.scheduler.framework import CycleState
from drakit.scheduler.plugins.balancedallocation import BalancedAllocation
from drakit.scheduler.plugins.fit import NodeResourcesFit
from drakit.scheduler.plugins.nodeaffinity import NodeAffinityPlugin
from drakit.scheduler.plugins.nodeports import NodePorts
from drakit.scheduler.plugins.nodeunschedulable import NodeUnschedulable
from drakit.scheduler.plugins.tainttoleration import TaintToleration
from tests.scheduler.plugins.making import make_node, make_pod

GPU = "vendor.example/gpu"
BACKED = {GPU: False}


def fit() -> NodeResourcesFit:
    return NodeResourcesFit(is_backed_by_class=lambda name, _: BACKED.get(name, False))


MAKERS: list[Callable[[], Any]] = [
    fit, BalancedAllocation, NodeAffinityPlugin, NodePorts, NodeUnschedulable, TaintToleration
]  # fmt: skip


def any_pod(chance: random.Random, name: str, **spec: Any) -> Pod:
    requests = {"cpu": chance.choice(["1", "500m"]), chance.choice(["memory", GPU]): 1}
    ports = [{"containerPort": 1, "hostPort": 80}] if chance.random() < 0.3 else []
    containers = [{"name": "main", "resources": {"requests": requests}, "ports": ports}]
    tolerations = [{"key": "t", "operator": "Exists"}] if chance.random() < 0.5 else []
    selector = {"disk": "ssd"} if chance.random() < 0.3 else {}
    return make_pod(name, containers=containers, tolerations=tolerations, nodeSelector=selector, **spec)


def change(chance: random.Random, cache: SchedulerCache, number: int) -> None:
    name = chance.choice("abcd")
    match chance.randrange(5):
        case 0:
            taints = [{"key": "t", "effect": chance.choice(["NoSchedule", "PreferNoSchedule"])}]
            allocatable = {"cpu": chance.choice(["2", "4"]), "memory": "100", "pods": 4, GPU: chance.randrange(3)}
            spec: dict[str, Any] = {"taints": taints[: chance.randrange(2)], "unschedulable": chance.random() < 0.5}
            labels = {"disk": chance.choice(["ssd", "hdd"])}
            cache.put_node(make_node(name, allocatable=allocatable, labels=labels, **spec))
        case 1:
            cache.remove_pod(f"uid-p{chance.randrange(number + 1)}")
        case 2:
            BACKED[GPU] = not BACKED[GPU]
        case _:
            cache.assume(any_pod(chance, f"p{number}", nodeName=name))


def answers(plugin: Any, pod: Pod, cache: SchedulerCache) -> list[Any]:
    state, nodes = CycleState(pod), cache.all()
    return [
        plugin.filter(state, pod, nodes) if hasattr(plugin, "filter") else None,
        plugin.score(state, pod, nodes) if hasattr(plugin, "score") else None,
    ]


@pytest.mark.parametrize("seed", range(10))
def test_memory_changes_no_answer(seed: int) -> None:
    chance, cache = random.Random(seed), SchedulerCache()
    BACKED[GPU] = False
    remembering = [make() for make in MAKERS]
    seen = set()
    for number in range(100):
        change(chance, cache, number)
        pod = any_pod(chance, "new")
        for plugin, make in zip(remembering, MAKERS, strict=True):
            found = answers(plugin, pod, cache)
            assert found == answers(make(), pod, cache)
            seen.add((plugin.name, bool(found[0])))
    refusing = {"NodeResourcesFit", "NodeAffinity", "NodePorts", "NodeUnschedulable", "TaintToleration"}
    assert {name for name, refused in seen if refused} == refusing
