"""What most of these tests begin with: a node with devices, and pods that want them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from drakit.api.objects.claims import ResourceClaim
from drakit.base.gates import FeatureGates
from drakit.client import CLAIMS
from tests.builders.documents import CLASS, DRIVER, Plain
from tests.builders.podmanifests import by_name, device_class, node, pod, resource_slice
from tests.builders.schedulercluster import SchedulingCluster, scheduling

GATES = FeatureGates.defaults()
NOT_AVAILABLE = "resourceclaim not available on the node"


@asynccontextmanager
async def scene(*devices: str, gates: FeatureGates = GATES, **options: Any) -> AsyncIterator[SchedulingCluster]:
    """One node with these devices."""
    async with scheduling(gates=gates, **options) as it:
        await it.create(device_class(), node("node-1"))
        if devices:
            await it.create(resource_slice("slice", *devices))
        yield it


def user(name: str, claim: str = "c", **others: Any) -> Plain:
    """A pod that uses a claim."""
    return pod(name, claims=[by_name(claim)], **others)


def exactly(name: str = "r", **fields: Any) -> Plain:
    return {"name": name, "exactly": {"deviceClassName": CLASS, **fields}}


def first_of(name: str, **alternatives: int) -> Plain:
    """A prioritized list: alternatives with their counts."""
    subs = [{"name": each, "deviceClassName": CLASS, "count": count} for each, count in alternatives.items()]
    return {"name": name, "firstAvailable": subs}


def bare_slice(name: str, devices: list[Plain], *, node_name: str = "node-1", pool: str = "pool") -> Plain:
    made = resource_slice(name, node=node_name, pool=pool)
    made["spec"]["devices"] = devices
    return made


async def stored(it: SchedulingCluster, name: str = "c") -> ResourceClaim:
    found = await it.find(CLAIMS, name)
    assert isinstance(found, ResourceClaim), f"there is no claim {name}"
    return found


async def devices_of(it: SchedulingCluster, name: str = "c") -> list[str]:
    """The devices that a claim was allocated."""
    allocation = (await stored(it, name)).status.allocation
    return [each.device for each in allocation.devices.results] if allocation else []


async def users_of(it: SchedulingCluster, name: str = "c") -> list[str]:
    return [each.name for each in (await stored(it, name)).status.reserved_for]


async def message_of(it: SchedulingCluster, name: str) -> str:
    condition = await it.condition(name)
    return condition.message if condition is not None else ""


def refused(reason: str, after: str = "still not schedulable", nodes: int = 1) -> str:
    """How a pod is told, as far as this plugin has a part in it."""
    return f"0/{nodes} nodes are available: {reason}. {after}"


__all__ = ["CLASS", "DRIVER", "GATES", "Plain", "by_name", "node", "pod", "resource_slice"]
