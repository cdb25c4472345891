"""How much of a resource there is on a node, and how much of that is taken.

In:  a node's ledger; for what the node does not advertise itself, the devices of the class behind the resource.
Out: two numbers by which nodes are compared. Devices change without their node changing: such numbers are not cached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from drakit.scheduler.framework import NodeInfo
from drakit.scheduler.framework.footprints import Amounts

Totals = Callable[[str, NodeInfo], tuple[int, int]]
"""How many devices a node has of the class behind a resource, and how many of them are in use."""


def no_devices(*_: object) -> tuple[int, int]:
    return 0, 0


def there_and_taken(node: NodeInfo, name: str, ledger: Amounts, totals: Totals) -> tuple[int, int]:
    """Capacity and use of a resource on a node. `ledger` has what pods request of the node's own resources."""
    capacity = node.allocatable.get(name, 0)
    if capacity or "/" not in name:
        return capacity, ledger.get(name, 0)
    return totals(name, node)


def depends_on_devices(resources: Iterable[str], asked: Amounts) -> bool:
    """Whether the scores of a pod with these requests may depend on devices."""
    return any("/" in name and asked.get(name) for name in resources)
