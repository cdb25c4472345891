"""A cluster in which pods may evict others, and pods of several priorities."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from drakit.base.gates import FeatureGates
from drakit.client import CLAIMS, PODS
from drakit.scheduler.config import SchedulerConfiguration, load_configuration
from tests.builders.podmanifests import by_name, claim, device_class, node, pod, resource_slice
from tests.builders.schedulercluster import SchedulingCluster, scheduling

Plain = dict[str, Any]
GATES = FeatureGates.defaults()
PRIORITIES = {"low": 1, "middle": 5, "high": 10}


def preempting(gates: FeatureGates = GATES) -> SchedulerConfiguration:
    text = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: DynamicResources
    args: {preemption: true}
"""
    return load_configuration(text, gates=gates)


@asynccontextmanager
async def scene(
    *devices: str, gates: FeatureGates = GATES, config: SchedulerConfiguration | None = None
) -> AsyncIterator[SchedulingCluster]:
    """One node with these devices."""
    async with scheduling(gates=gates, config=config or preempting(gates)) as it:
        for name, value in PRIORITIES.items():
            await it.create(priority_class(name, value))
        await it.create(device_class(), node("node-1"))
        if devices:
            await it.create(resource_slice("slice", *devices))
        yield it


def priority_class(name: str, value: int) -> Plain:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def user(name: str, priority: str, *claims: str, **spec: Any) -> Plain:
    """A pod of a priority that uses claims."""
    used = [by_name(each, f"use-{each}") for each in claims]
    return pod(name, claims=used, cpu=spec.pop("cpu", ""), spec={"priorityClassName": priority, **spec})


async def add(it: SchedulingCluster, name: str, priority: str, **spec: Any) -> None:
    """A claim, and a pod of that priority which uses it; both have that name."""
    await it.create(claim(name), user(name, priority, name, **spec))


async def end(it: SchedulingCluster, *names: str) -> None:
    """As a node agent would, when the grace period of these pods is over."""
    for name in names:
        await it.delete(PODS, name)


async def leaving(it: SchedulingCluster) -> list[str]:
    return sorted(each.metadata.name for each in await it.all(PODS) if each.metadata.deletion_timestamp)


async def devices_of(it: SchedulingCluster, name: str) -> list[str]:
    found = await it.find(CLAIMS, name)
    return [each.device for each in found.status.allocation.devices.results] if found.status.allocation else []


async def message_of(it: SchedulingCluster, name: str) -> str:
    condition = await it.condition(name)
    return condition.message if condition is not None else ""
