"""Other devices for claims on a node, when those that come first take more of the node than it has left.

In:  an allocator, and what says whether a choice fits the node.
Out: an allocator whose answer fits, or none. Few choices are tried: each leaves out one device that takes something.

Upstream gives the node up after the first choice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from drakit.allocator import Allocated, Allocator, Inventory
from drakit.api import DeviceRequestAllocationResult
from drakit.scheduler.dynamicresources.state.needs import ClaimCharge, Variant

MOST_CHOICES = 8

Fits = Callable[[Sequence[ClaimCharge]], bool]
Mapped = Callable[[Sequence[ClaimCharge]], Sequence[DeviceRequestAllocationResult]]


def other_choice(variant: Variant, node: str, *, fits: Fits, mapped: Mapped) -> Allocator | None:
    """`mapped` are the devices of a choice that take something of the node."""
    allocator = variant.allocator
    tried = 0
    while allocator is not None and tried < MOST_CHOICES:
        uses = charges_of(allocator, variant, node)
        if uses is None or (tried and fits(uses)):
            return allocator if uses is not None else None
        taking = mapped(uses)
        if not taking:
            return None
        without = _without(allocator.inventory, taking[0])
        allocator = Allocator(without, variant.claims, snapshot=False)
        tried += 1
    return None


def charges_of(allocator: Allocator, variant: Variant, node: str) -> list[ClaimCharge] | None:
    """What the claims would get on the node; None when they cannot be allocated there."""
    # Nothing of this is kept, so shares need no ids.
    outcome = allocator.allocate(node, new_uid=str)
    if not isinstance(outcome, Allocated):
        return None
    return [ClaimCharge(claim, got) for claim, got in zip(variant.claims, outcome.allocations, strict=True)]


def _without(inventory: Inventory, left_out: DeviceRequestAllocationResult) -> Inventory:
    """As if one device was not published."""
    fork = inventory.fork()
    pool = inventory.pools.get((left_out.driver, left_out.pool))
    for each in pool.slices if pool is not None else ():
        kept = tuple(device for device in each.spec.devices if device.name != left_out.device)
        if len(kept) < len(each.spec.devices):
            fork.put_slice(msgspec.structs.replace(each, spec=msgspec.structs.replace(each.spec, devices=kept)))
    return fork
