"""Short ways to write pods, nodes and devices that take something of their node."""

from __future__ import annotations

from typing import Any

from drakit.allocator import Inventory
from drakit.api import Device, DeviceRequestAllocationResult, Node, Pod, ResourceClaim, ResourceSlice, from_plain
from drakit.base.gates import FeatureGates
from drakit.base.quantity import Quantity
from drakit.scheduler.dynamicresources.nodeallocatable import Accounting, containers_by_claim
from drakit.scheduler.dynamicresources.nodeallocatable.devices import MappedDevices
from drakit.scheduler.dynamicresources.state.needs import ClaimCharge
from drakit.scheduler.framework import NodeInfo
from tests.builders.objects import GPU, inventory_of, pod_of

Plain = dict[str, Any]
ON = FeatureGates.only(["DRANodeAllocatableResources"])
OFF = FeatureGates.only([])


def per_device(**amounts: str) -> Plain:
    """Mappings that count devices."""
    return {"nodeAllocatableResourceMappings": {key: {"allocationMultiplier": each} for key, each in amounts.items()}}


def by_capacity(multiplier: str | None = None, **keys: str) -> Plain:
    """Mappings that count a capacity."""
    more = {"allocationMultiplier": multiplier} if multiplier else {}
    return {"nodeAllocatableResourceMappings": {name: {"capacityKey": key, **more} for name, key in keys.items()}}


def capacity(**amounts: str) -> Plain:
    return {"capacity": {name: {"value": amount} for name, amount in amounts.items()}}


def mapped_device(**fields: Any) -> Device:
    return from_plain(Device, {"name": "d", **fields})


def result(**consumed: str) -> DeviceRequestAllocationResult:
    body = {"request": "r", "driver": GPU, "pool": "pool", "device": "d", "consumedCapacity": consumed}
    return from_plain(DeviceRequestAllocationResult, body)


def mapped(*slices: ResourceSlice) -> tuple[Inventory, MappedDevices]:
    inventory = inventory_of(*slices)
    devices = MappedDevices(inventory)
    for each in slices:
        devices.put_slice(each)
    return inventory, devices


def node_info(name: str = "node-a", **allocatable: str) -> NodeInfo:
    given = {resource.replace("_", "-"): amount for resource, amount in allocatable.items()}
    return NodeInfo(from_plain(Node, {"metadata": {"name": name}, "status": {"allocatable": given}}))


def container(name: str = "c", *claims: str, **requests: str) -> Plain:
    return {"name": name, "resources": {"requests": requests, "claims": [{"name": claim} for claim in claims]}}


def charging_pod(
    *containers: Plain, name: str = "pod", claims: tuple[str, ...] = (), taken: Any = None, **spec: Any
) -> Pod:
    """With claims of the same names as its entries; `taken` by claim is what its status says."""
    entries = [{"name": claim, "resourceClaimName": claim} for claim in claims]
    statuses = [{"resourceClaimName": claim, "resources": amounts} for claim, amounts in (taken or {}).items()]
    status = {"nodeAllocatableResourceClaimStatuses": statuses}
    return pod_of(*containers, name=name, status=status, resourceClaims=entries, **spec)


def uses(of: Pod, *claims: ResourceClaim) -> list[ClaimCharge]:
    """The claims with the devices that they hold."""
    users = containers_by_claim(of)
    return [
        ClaimCharge(each, each.status.allocation, users.get(each.metadata.name, ()))
        for each in claims
        if each.status.allocation
    ]


class Nodes(list[NodeInfo]):
    """All the nodes of a cluster."""

    @property
    def affine(self) -> dict[str, int]:
        return {}

    @property
    def tainted(self) -> list[str]:
        return [each.name for each in self if each.node.spec.taints]

    @property
    def cordoned(self) -> list[str]:
        return [each.name for each in self if each.node.spec.unschedulable]

    @property
    def advertised(self) -> list[str]:
        return [name for node in self for name, amount in node.allocatable.items() if amount]

    def get(self, name: str) -> NodeInfo | None:
        return next((each for each in self if each.name == name), None)

    def all(self) -> list[NodeInfo]:
        return list(self)

    def placed(self) -> list[Pod]:
        return [pod for node in self for pod in node.pods.values()]


def accounting(*slices: ResourceSlice, nodes: Nodes | None = None, gates: FeatureGates = ON) -> Accounting:
    made = Accounting(inventory_of(*slices), nodes if nodes is not None else Nodes(), gates)
    for each in slices:
        made.devices.put_slice(each)
    return made


def texts(amounts: Any) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}


def quantity(text: str) -> Quantity:
    return Quantity.parse(text)
