"""Counting: how many devices of a class a node has, and how many of them are in use.

In:  an inventory, a class, a node.
Out: two numbers by which nodes can be compared. Nothing is searched.
"""

from __future__ import annotations

from drakit.allocator.inventory import Inventory
from drakit.allocator.matching import Selection
from drakit.allocator.pools import PoolView
from drakit.api import DeviceClass
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
