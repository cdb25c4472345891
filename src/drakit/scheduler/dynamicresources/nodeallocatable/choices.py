"""Other devices for claims on a node, when those that come first take more of the node than it has left.

In:  an allocator, and what says whether a choice fits the node.
Out: an allocator whose answer fits, or none.

A choice that does not fit is left by leaving out one of its devices that take something, each in turn: choices without
one device come before choices without two. A device that is too much for the node by itself is in no choice that fits;
it is left out at once, together with those of its pool that take just as much. Upstream gives the node up after the
first choice.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from drakit.allocator import Allocated, Allocator, Inventory, PoolKey
from drakit.api import Device, DeviceRequestAllocationResult
from drakit.scheduler.dynamicresources.state.needs import ClaimCharge, Variant

MOST_CHOICES = 16

Fits = Callable[[Sequence[ClaimCharge]], bool]
Mapped = Callable[[Sequence[ClaimCharge]], Sequence[DeviceRequestAllocationResult]]
LeftOut = frozenset[tuple[PoolKey, str]]


def other_choice(variant: Variant, node: str, *, fits: Fits, mapped: Mapped) -> Allocator | None:
    """`mapped` are the devices of a choice that take something of the node. The variant's own choice does not fit."""
    if variant.allocator is None:
        return None
    inventory = variant.allocator.inventory
    waiting: deque[LeftOut] = deque([frozenset()])
    seen: set[LeftOut] = set(waiting)
    for _ in range(MOST_CHOICES):
        if not waiting:
            return None
        left_out = waiting.popleft()
        allocator = _without(inventory, left_out, variant) if left_out else variant.allocator
        uses = charges_of(allocator, variant, node)
        if uses is None:
            continue
        if left_out and fits(uses):
            return allocator
        for more in _next(inventory, uses, fits, mapped):
            if left_out | more not in seen:
                seen.add(left_out | more)
                waiting.append(left_out | more)
    return None


def charges_of(allocator: Allocator, variant: Variant, node: str) -> list[ClaimCharge] | None:
    """What the claims would get on the node; None when they cannot be allocated there."""
    # Nothing of this is kept, so shares need no ids.
    outcome = allocator.allocate(node, new_uid=str)
    if not isinstance(outcome, Allocated):
        return None
    return [ClaimCharge(claim, got) for claim, got in zip(variant.claims, outcome.allocations, strict=True)]


def _next(inventory: Inventory, uses: Sequence[ClaimCharge], fits: Fits, mapped: Mapped) -> Iterator[LeftOut]:
    """What may be left out of a choice that does not fit: whatever fits lacks one of these."""
    taking = [(use, each) for use in uses for each in mapped([use])]
    alone = [each for use, each in taking if not each.consumed_capacity and not fits([_only(use, each)])]
    if alone:
        yield frozenset(name for each in alone for name in _alike(inventory, each))
        return
    for _, each in taking:
        yield frozenset([((each.driver, each.pool), each.device)])


def _only(use: ClaimCharge, device: DeviceRequestAllocationResult) -> ClaimCharge:
    allocation = use.allocation
    return ClaimCharge(use.claim, replace(allocation, devices=replace(allocation.devices, results=(device,))))


def _alike(inventory: Inventory, given: DeviceRequestAllocationResult) -> Iterator[tuple[PoolKey, str]]:
    """The device, and those of its pool that take the same of their node whoever has them."""
    key = (given.driver, given.pool)
    pool = inventory.pools.get(key)
    devices = [device for each in pool.slices for device in each.spec.devices] if pool is not None else []
    found = next((each for each in devices if each.name == given.device), None)
    yield key, given.device
    for each in devices:
        if found is not None and _takes(each) == _takes(found):
            yield key, each.name


def _takes(device: Device) -> object:
    return device.node_allocatable_resource_mappings, device.capacity


def _without(inventory: Inventory, left_out: LeftOut, variant: Variant) -> Allocator:
    """As if some devices were not published."""
    fork = inventory.fork()
    names: dict[PoolKey, set[str]] = defaultdict(set)
    for key, name in left_out:
        names[key].add(name)
    for key, gone in names.items():
        pool = inventory.pools.get(key)
        for each in pool.slices if pool is not None else ():
            kept = tuple(device for device in each.spec.devices if device.name not in gone)
            if len(kept) < len(each.spec.devices):
                fork.put_slice(replace(each, spec=replace(each.spec, devices=kept)))
    # In the time of the attempt: a search without some devices may take long where the first one did not.
    timer = variant.budget.begin if variant.budget is not None else None
    return Allocator(fork, variant.claims, timer=timer, snapshot=False)
