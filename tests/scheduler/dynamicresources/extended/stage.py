"""A cluster in which devices stand behind a resource name, and pods that ask for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from drakit.api import ResourceClaim
from drakit.apiserver import Server
from drakit.base.gates import FeatureGates
from drakit.client import CLAIMS, InProcess
from drakit.controllers.composition import ALL
from tests.builders.podmanifests import device_class, node, pod, resource_slice
from tests.builders.schedulercluster import SchedulingCluster, cluster
from tests.scheduler.dynamicresources.extended.faults import Faulty, written

Plain = dict[str, Any]
GPU = "example.com/gpu"
NIC = "example.com/nic"
CLASS = "gpu.example.com"
IMPLICIT = f"deviceclass.resource.kubernetes.io/{CLASS}"
GATES = FeatureGates.defaults()
ANNOTATION = "resource.kubernetes.io/extended-resource-claim"


def gpu_class(name: str = CLASS, resource: str | None = GPU, *, driver: str = "gpu.example.com") -> Plain:
    made = device_class(name, driver)
    if resource is not None:
        made["spec"]["extendedResourceName"] = resource
    return made


def plugin_node(name: str, **room: str) -> Plain:
    """A node with a device plugin: `gpu` and `nic` are what it advertises."""
    known = {"gpu": GPU, "nic": NIC}
    return node(name, room={known[each]: amount for each, amount in room.items()})


def container(name: str, **amounts: Any) -> Plain:
    known = {"gpu": GPU, "nic": NIC, "implicit": IMPLICIT}
    sidecar = {"restartPolicy": "Always"} if amounts.pop("sidecar", False) else {}
    limits = {known.get(each, each): str(amount) for each, amount in amounts.items()}
    return {"name": name, "image": "i", "resources": {"limits": limits}, **sidecar}


def asking(name: str = "p", *init: Plain, **amounts: Any) -> Plain:
    """A pod with one container that asks for so much; `init` containers come before it."""
    spec: Plain = {"containers": [container("ctr", **amounts)]}
    if init:
        spec["initContainers"] = list(init)
    return pod(name, spec=spec)


@asynccontextmanager
async def stage(*devices: str, gates: FeatureGates = GATES, **options: Any) -> AsyncIterator[SchedulingCluster]:
    """One node with these devices, behind one resource name."""
    async with cluster(gates) as it:
        await it.start(ALL)
        await it.create(gpu_class(), node("node-1"))
        if devices:
            await it.create(resource_slice("slice", *devices))
        if options.pop("start", True):
            await it.start_scheduler(**options)
        yield it


async def start_over(it: SchedulingCluster, **failures: int) -> Faulty:
    """Start the scheduler behind a line that can fail; `delete=2` refuses its first two deletions of claims."""
    line = Faulty(InProcess(it.server))
    left = {f"{method.upper()} resourceclaims": count for method, count in failures.items()}
    line.refuse = lambda request: line.refused.count(what := written(request)) < left.get(what, 0)
    server, it.server = it.server, cast("Server", line)
    await it.start_scheduler()
    it.server = server
    return line


async def claims(it: SchedulingCluster) -> list[ResourceClaim]:
    return [each for each in await it.all(CLAIMS) if ANNOTATION in each.metadata.annotations]


async def the_claim(it: SchedulingCluster) -> ResourceClaim:
    (found,) = await claims(it)
    return found


def devices_of(claim: ResourceClaim) -> list[str]:
    return [each.device for each in claim.status.allocation.devices.results] if claim.status.allocation else []


def requests_of(claim: ResourceClaim) -> dict[str, tuple[str, int]]:
    return {
        each.name: (each.exactly.device_class_name, each.exactly.count)
        for each in claim.spec.devices.requests
        if each.exactly
    }


async def mappings_of(it: SchedulingCluster, name: str = "p") -> list[tuple[str, str, str]]:
    status = (await it.pod(name)).status.extended_resource_claim_status
    mappings = status.request_mappings if status else ()
    return [(each.container_name, each.resource_name, each.request_name) for each in mappings]


async def message_of(it: SchedulingCluster, name: str = "p") -> str:
    condition = await it.condition(name)
    return condition.message if condition is not None else ""


async def assert_placed(it: SchedulingCluster, name: str = "p") -> None:
    """As if nothing had ever gone wrong."""
    assert await it.node_of(name) == "node-1"
    made, placed = await the_claim(it), await it.pod(name)
    assert requests_of(made) == {"container-0-request-0": (CLASS, 1)}
    assert len(devices_of(made)) == 1
    assert [each.uid for each in made.status.reserved_for] == [placed.metadata.uid]
    assert made.metadata.finalizers == ("resource.kubernetes.io/delete-protection",)
    assert placed.status.extended_resource_claim_status is not None
    assert placed.status.extended_resource_claim_status.resource_claim_name == made.metadata.name
    assert await mappings_of(it, name) == [("ctr", GPU, "container-0-request-0")]
