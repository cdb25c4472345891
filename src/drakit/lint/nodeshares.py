"""Warnings about devices that take more of their node than it has at all."""

from __future__ import annotations

from collections.abc import Iterator

from drakit.api import Device, Node, ResourceSlice
from drakit.base.quantity import Quantity
from drakit.lint.cluster import Cluster
from drakit.lint.findings import Draft, warn

_ONE = Quantity.of(1)


def check_shares(cluster: Cluster) -> Iterator[Draft]:
    """What an allocation takes of a shared device is not known before; all others take the same from everybody."""
    if not cluster.gates.enabled("DRANodeAllocatableResources"):
        return
    nodes = {each.metadata.name: each.view.status.allocatable for each in cluster.of(Node)}
    for manifest in cluster.of(ResourceSlice):
        for index, device in enumerate(manifest.view.spec.devices):
            node = device.node_name or manifest.view.spec.node_name or ""
            # A node of which nothing is said has enough.
            has = nodes.get(node)
            if not has or device.allow_multiple_allocations:
                continue
            for name, amount in _taken(device):
                if amount > has.get(name, Quantity.of(0)).nanos * _ONE.nanos:
                    path = f"spec.devices[{index}].nodeAllocatableResourceMappings[{name}]"
                    message = f"takes more {name} than {node} has ({has.get(name, 0)}): no pod gets the device"
                    yield warn(manifest, "device-too-large", path, message)


def _taken(device: Device) -> Iterator[tuple[str, int]]:
    """Resources with how much of each goes to the device, in nanos of nanos: the product of two amounts is exact."""
    for name, mapping in device.node_allocatable_resource_mappings.items():
        multiplier = mapping.allocation_multiplier or _ONE
        if not mapping.capacity_key:
            yield name, multiplier.nanos * _ONE.nanos
        elif mapping.capacity_key in device.capacity:
            yield name, multiplier.nanos * device.capacity[mapping.capacity_key].value.nanos
