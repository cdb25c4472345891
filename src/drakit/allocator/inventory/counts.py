"""Devices of a class on a node: how many there are, how many are in use, and whether one result's device is among them.

In:  an inventory, a class, a node.
Out: two numbers by which nodes can be compared. Nothing is searched.
"""

from __future__ import annotations

from drakit.allocator.inventory.inventory import Inventory
from drakit.allocator.inventory.selectors import DeviceSelectors
from drakit.api import DeviceClass, DeviceRequestAllocationResult
from drakit.base.taints import untolerated


def count_devices(inventory: Inventory, device_class: DeviceClass, node: str) -> tuple[int, int]:
    """How many devices of the class the node can access, and how many are in use. Both are 0 if a selector fails."""
    selectors = DeviceSelectors.of_class(device_class, inventory.gates)
    there = used = 0
    for view in inventory.views(node):
        matching, failing = view.content.matches(selectors)
        if failing & view.content.reachable:
            return 0, 0
        matching &= view.content.reachable
        there += matching.bit_count()
        used += (matching & inventory.ledger.usage(view).held).bit_count()
    return there, used


def offers(inventory: Inventory, device_class: DeviceClass, node: str, result: DeviceRequestAllocationResult) -> bool:
    """Whether the device of a result could be allocated on the node through the class, if it were free."""
    view = next((each for each in inventory.views(node) if each.key == (result.driver, result.pool)), None)
    position = view.index.get(result.device) if view is not None else None
    if view is None or position is None:
        return False
    matching, _ = view.content.matches(DeviceSelectors.of_class(device_class, inventory.gates))
    if not (matching & view.content.reachable) >> position & 1:
        return False
    taints = view.content.taints[position] if inventory.gates.enabled("DRADeviceTaints") else ()
    return untolerated(taints, result.tolerations) is None
