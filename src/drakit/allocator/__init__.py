"""The allocator: which devices satisfy a set of claims on a node, in the order that Kubernetes specifies.

In:  an Inventory, kept up to date with slices, classes, nodes, taint rules and claims.
Out: allocations that can be stored as they are, or the reasons why there are none. Pure and synchronous.
"""

from drakit.allocator.allocation import Allocator, allocate
from drakit.allocator.inventory.contents import Problem
from drakit.allocator.inventory.inventory import Inventory
from drakit.allocator.inventory.ledger import Holding, Ledger, PoolUse
from drakit.allocator.inventory.pools import Pool, PoolKey, PoolView
from drakit.allocator.results.outcomes import (
    Allocated,
    Allocation,
    AllocationError,
    NodeError,
    OutOfTime,
    Unsatisfiable,
)
from drakit.allocator.results.reasons import Cause, ClaimReasons, PoolTrouble, Reasons, Refusal, RequestReasons, tell
from drakit.allocator.results.remedies import Remedy
from drakit.allocator.search.search import Answer, Verdict

__all__ = [
    "Allocated",
    "Allocation",
    "AllocationError",
    "Allocator",
    "Answer",
    "Cause",
    "ClaimReasons",
    "Holding",
    "Inventory",
    "Ledger",
    "NodeError",
    "OutOfTime",
    "Pool",
    "PoolKey",
    "PoolTrouble",
    "PoolUse",
    "PoolView",
    "Problem",
    "Reasons",
    "Refusal",
    "Remedy",
    "RequestReasons",
    "Unsatisfiable",
    "Verdict",
    "allocate",
    "tell",
]
