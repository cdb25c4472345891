"""A cluster with devices that take something of their node, and pods that use them, as users would write them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from drakit.api import to_plain
from drakit.base.gates import FeatureGates
from tests.builders.documents import pod_document, request_of
from tests.builders.manifests import claim
from tests.builders.podmanifests import device_class, node, resource_slice
from tests.builders.schedulercluster import SchedulingCluster, scheduling

Plain = dict[str, Any]
GATES = FeatureGates.of({"DRANodeAllocatableResources": True})
CPU, GPU = "cpu.example.com", "gpu.example.com"


@asynccontextmanager
async def scene(*slices: Plain, room: Plain | None = None, **options: Any) -> AsyncIterator[SchedulingCluster]:
    """One node, a class for each of two drivers, and these slices."""
    async with scheduling(gates=options.pop("gates", GATES), **options) as it:
        classes = [device_class("cpu", CPU), device_class("gpu", GPU)]
        await it.create(*classes, node("node-1", room=room or {"cpu": "16", "memory": "32Gi"}), *slices)
        yield it


def published(*devices: Plain, driver: str = CPU, name: str = "", node: str = "node-1", **spec: Any) -> Plain:
    made = resource_slice(name or f"{driver}-{node}", pool=f"{driver}-{node}", node=node)
    made["spec"].update({"driver": driver, "devices": list(devices), **spec})
    return made


def cores(number: int, *, cpu: str = "1") -> Plain:
    """A slice whose devices are cpus, one by one."""
    mapping = {"cpu": {"allocationMultiplier": cpu}}
    return published(*({"name": f"cpu{each}", "nodeAllocatableResourceMappings": mapping} for each in range(number)))


def socket(**amounts: str) -> Plain:
    """A slice with one device of which claims take a part: `cpu`, `memory`."""
    keys = {resource: f"dra.example.com/{resource}" for resource in amounts}
    return published(
        {
            "name": "socket0",
            "allowMultipleAllocations": True,
            "capacity": {keys[resource]: {"value": amount} for resource, amount in amounts.items()},
            "nodeAllocatableResourceMappings": {resource: {"capacityKey": key} for resource, key in keys.items()},
        }
    )


def capacity_claim(name: str, count: int = 1, *, of: str = "cpu", **amounts: str) -> Plain:
    """`amounts` of capacity, as `cpu` and `memory`."""
    requests = {f"dra.example.com/{each}": amount for each, amount in amounts.items()}
    capacity: Plain = {"capacity": {"requests": requests}} if amounts else {}
    return claim(name, request_of("r", of, count=count, **capacity))


def container(name: str = "ctr", *claims: str, **requests: str) -> Plain:
    resources = {"requests": requests, "claims": [{"name": each} for each in claims]}
    return {"name": name, "image": "img", "resources": resources}


def charging_pod(name: str, *containers: Plain, claims: tuple[str, ...] = (), **spec: Any) -> Plain:
    """By default with one container that uses all of its claims, which have the names of the pod's entries."""
    entries = [{"name": each, "resourceClaimName": each} for each in claims]
    made = {"restartPolicy": "Never", "containers": list(containers) or [container("ctr", *claims)], **spec}
    asked = [*entries, *spec.get("resourceClaims", ())]
    return pod_document(name, {**made, "resourceClaims": asked}, namespace="default")


async def taken(it: SchedulingCluster, name: str) -> list[Plain]:
    """What a pod's status says that its claims take."""
    return [to_plain(each) for each in (await it.pod(name)).status.node_allocatable_resource_claim_statuses]


def requested(it: SchedulingCluster, node: str = "node-1") -> dict[str, int]:
    """What the scheduler's ledger counts on a node, without zeroes."""
    assert it.scheduler is not None
    info = it.scheduler.cache.get(node)
    assert info is not None
    return {resource: amount for resource, amount in info.requested.items() if amount}


async def message_of(it: SchedulingCluster, name: str) -> str:
    condition = await it.condition(name)
    return condition.message if condition is not None else ""
