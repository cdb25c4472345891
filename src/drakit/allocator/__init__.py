"""The allocator: which devices satisfy a set of claims on a node, in the order that Kubernetes specifies.

In:  an Inventory, kept up to date with slices, classes, nodes, taint rules and claims.
Out: allocations that can be stored as they are, or the reasons why there are none. Pure and synchronous.
"""

from drakit.allocator.allocation import (
    Allocated,
    Allocation,
    AllocationError,
    Allocator,
    NodeError,
    OutOfTime,
    Unsatisfiable,
    allocate,
)
from drakit.allocator.inventory import Inventory
from drakit.allocator.ledger import Ledger
from drakit.allocator.search import Answer, Verdict

__all__ = [
    "Allocated",
    "Allocation",
    "AllocationError",
    "Allocator",
    "Answer",
    "Inventory",
    "Ledger",
    "NodeError",
    "OutOfTime",
    "Unsatisfiable",
    "Verdict",
    "allocate",
]
