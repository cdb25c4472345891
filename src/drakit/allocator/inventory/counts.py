"""Counting: how many devices of a class a node has, and how many of them are in use; and whether one is among them.

In:  an inventory, a class, a node.
Out: two numbers by which nodes can be compared. Nothing is searched.
"""

from __future__ import annotations

from drakit.allocator.inventory.inventory import Inventory
from drakit.allocator.inventory.pools import PoolView
from drakit.allocator.inventory.selectors import Selection
from drakit.api import DeviceClass, DeviceRequestAllocationResult
from drakit.base.taints import untolerated
from drakit.selectors import Gates


def count_devices(inventory: Inventory, device_class: DeviceClass, node: str) -> tuple[int, int]:
    """Devices of the class that the node can use, and those of them that somebody has; none when a selector fails."""
    selection = _selection(inventory, device_class)
    there = used = 0
    for view in inventory.views(node):
        accepted, failing = view.content.verdicts(selection)
        if failing & view.content.reachable:
            return 0, 0
        accepted &= view.content.reachable
        there += accepted.bit_count()
        used += (accepted & _busy(inventory, view)).bit_count()
    return there, used


def offers(inventory: Inventory, device_class: DeviceClass, node: str, result: DeviceRequestAllocationResult) -> bool:
    """Whether the device of a result could be allocated on the node by its class, were it free."""
    view = next((each for each in inventory.views(node) if each.key == (result.driver, result.pool)), None)
    position = view.index.get(result.device) if view is not None else None
    if view is None or position is None:
        return False
    accepted, _ = view.content.verdicts(_selection(inventory, device_class))
    if not (accepted & view.content.reachable) >> position & 1:
        return False
    taints = view.content.taints[position] if inventory.gates.enabled("DRADeviceTaints") else ()
    return untolerated(taints, result.tolerations) is None


def _selection(inventory: Inventory, device_class: DeviceClass) -> Selection:
    texts = [each.cel.expression for each in device_class.spec.selectors if each.cel]
    gates = inventory.gates
    return Selection.of(
        texts, (), gates=Gates(gates.enabled("DRAListTypeAttributes"), gates.enabled("DRAConsumableCapacity"))
    )


def _busy(inventory: Inventory, view: PoolView) -> int:
    usage = inventory.ledger.usage(view)
    busy = usage.busy
    for position in usage.shares:
        busy |= 1 << position
    return busy
