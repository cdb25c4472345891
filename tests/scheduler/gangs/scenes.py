"""Gangs as a user would write them, and a cluster that schedules them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from drakit.api.objects.meta import Condition, find_condition
from drakit.base.gates import FeatureGates
from drakit.client import POD_GROUPS
from tests.builders.documents import Plain
from tests.builders.manifests import pod_group
from tests.builders.podmanifests import node, pod
from tests.builders.schedulercluster import SchedulingCluster, scheduling

GATES = FeatureGates.of({"GenericWorkload": True, "GangScheduling": True, "DRAWorkloadResourceClaims": True})
PROFILE = "default-scheduler"


def gang(name: str, least: int, claims: list[Plain] | None = None) -> Plain:
    """A group of which that many pods run, or none."""
    made = pod_group(name, claims or [])
    made["spec"]["schedulingPolicy"] = {"gang": {"minCount": least}}
    return made


def member(name: str, group: str = "pg", *, cpu: str = "1", **others: Any) -> Plain:
    return pod(name, cpu=cpu, group=group, **others)


def members(count: int, group: str = "pg", **others: Any) -> list[Plain]:
    """Pods `pg-0`, `pg-1`, …"""
    return [member(f"{group}-{number}", group, **others) for number in range(count)]


@asynccontextmanager
async def with_cpus(*cpus: int, gates: FeatureGates = GATES, **options: Any) -> AsyncIterator[SchedulingCluster]:
    """Nodes `node-0`, `node-1`, … with so many cpus each, and a scheduler alone."""
    async with scheduling(gates=gates, controllers=(), **options) as it:
        for number, each in enumerate(cpus):
            await it.create(node(f"node-{number}", room={"cpu": str(each)}))
        yield it


async def placed(it: SchedulingCluster, names: Iterable[str]) -> list[str]:
    """Those of the pods that are on a node."""
    return [name for name in names if await it.node_of(name)]


def named(count: int, group: str = "pg") -> list[str]:
    return [f"{group}-{number}" for number in range(count)]


async def scheduled(it: SchedulingCluster, group: str = "pg") -> Condition | None:
    """What the group says of its scheduling."""
    return find_condition((await it.find(POD_GROUPS, group)).status.conditions, "PodGroupScheduled")


def group_attempts(it: SchedulingCluster, result: str) -> float:
    return it.metric("scheduler_podgroup_schedule_attempts_total", result=result, profile=PROFILE)
