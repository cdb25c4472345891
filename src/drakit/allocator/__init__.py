"""The allocator: which devices satisfy a set of claims on a node, in the order that Kubernetes specifies.

In:  an Inventory, kept up to date with slices, classes, nodes, taint rules and claims.
Out: allocations that can be stored as they are, or the reasons why there are none. Pure and synchronous.
"""

from drakit.allocator.allocation import Allocator, UnsuitableNode, allocate
from drakit.allocator.inventory.capacity import short_name
from drakit.allocator.inventory.contents import PoolProblem
from drakit.allocator.inventory.devicetaints import current, repelling_taint, taints_of
from drakit.allocator.inventory.inventory import Inventory
from drakit.allocator.inventory.ledger import Holding, Ledger, PoolUse
from drakit.allocator.inventory.pools import Pool, PoolKey, PoolView
from drakit.allocator.inventory.shapes import CounterKey, counter_use
from drakit.allocator.results.outcomes import (
    Allocated,
    Allocation,
    AllocationError,
    NodeError,
    OutOfTime,
    Unsatisfiable,
)
from drakit.allocator.results.reasons import (
    Cause,
    ClaimReasons,
    DeviceRefusal,
    PoolTrouble,
    Reasons,
    Remedy,
    RequestReasons,
    tell,
)
from drakit.allocator.search.answer import SearchAnswer, SearchResult
from drakit.allocator.search.plans import MAX_RESULTS

__all__ = [
    "MAX_RESULTS",
    "Allocated",
    "Allocation",
    "AllocationError",
    "Allocator",
    "Cause",
    "ClaimReasons",
    "CounterKey",
    "DeviceRefusal",
    "Holding",
    "Inventory",
    "Ledger",
    "NodeError",
    "OutOfTime",
    "Pool",
    "PoolKey",
    "PoolProblem",
    "PoolTrouble",
    "PoolUse",
    "PoolView",
    "Reasons",
    "Remedy",
    "RequestReasons",
    "SearchAnswer",
    "SearchResult",
    "Unsatisfiable",
    "UnsuitableNode",
    "allocate",
    "counter_use",
    "current",
    "repelling_taint",
    "short_name",
    "taints_of",
    "tell",
]
