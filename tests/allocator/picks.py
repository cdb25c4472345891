"""Allocate on one node, and the names of the devices that were picked."""

from __future__ import annotations

from drakit.allocator import Allocated, Allocation, Inventory, allocate
from drakit.api import ResourceClaim
from drakit.base.gates import FeatureGates
from tests.builders.objects import ALL_ON


def run(inventory: Inventory, *claims: ResourceClaim, node: str = "node-a", explain: bool = False) -> Allocation:
    return allocate(inventory, node, claims, new_uid=lambda: "share", explain=explain)


def names(got: Allocation) -> list[str] | None:
    """The devices of all claims in order; None when there is no allocation."""
    if not isinstance(got, Allocated):
        return None
    return [each.device for allocation in got.allocations for each in allocation.devices.results]


def picked(inventory: Inventory, *claims: ResourceClaim, node: str = "node-a") -> list[str] | None:
    return names(run(inventory, *claims, node=node))


def gates_without(*names: str) -> FeatureGates:
    return FeatureGates.only(ALL_ON.on - set(names))
