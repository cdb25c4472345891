"""Devices that were given twice, by two schedulers that did not know of each other. Pure.

In:  the inventory, and a claim with its allocation.
Out: what the claim takes that others hold too.

Each scheduler decides on what it has seen, so two of them can store allocations that exclude each other. Both are told
of both in the order in which they were stored. Whoever finds, when it is told of its own, that another was there before
gives up.
"""

from __future__ import annotations

from drakit.allocator import Inventory, short_name
from drakit.api.objects.claims import DeviceRequestAllocationResult, ResourceClaim
from drakit.api.requests import results_of

PoolKey = tuple[str, str]


def find_overlap(inventory: Inventory, claim: ResourceClaim) -> str | None:
    """The first device of the claim that it cannot have beside others, as driver/pool/device; none when all is well."""
    counted: set[PoolKey] = set()
    for result in results_of(claim):
        pool = (result.driver, result.pool)
        if result.admin_access:
            continue
        # The counters of a pool are the same for all its devices.
        if _is_taken(inventory, claim.metadata.uid, result) or (pool not in counted and _drains(inventory, pool)):
            return f"{result.driver}/{result.pool}/{result.device}"
        counted.add(pool)
    return None


def _is_taken(inventory: Inventory, uid: str, result: DeviceRequestAllocationResult) -> bool:
    use = inventory.ledger.use((result.driver, result.pool))
    others = [each for each in use.devices.get(result.device, ()) if each.uid != uid]
    whole = result.share_id is None or not inventory.ledger.consumable
    if any(whole or each.share is None for each in others):
        return True
    return bool(others) and _exceeds(inventory, result)


def _exceeds(inventory: Inventory, result: DeviceRequestAllocationResult) -> bool:
    """Whether the shares of a device take more of it than it has."""
    pool = inventory.pools.get((result.driver, result.pool))
    used = inventory.ledger.use((result.driver, result.pool)).shares.get(result.device, {})
    for each in pool.slices if pool else ():
        for device in each.spec.devices:
            if device.name == result.device:
                return any(
                    used.get(short_name(result.driver, name), 0) > each_capacity.value.nanos
                    for name, each_capacity in device.capacity.items()
                )
    return False


def _drains(inventory: Inventory, key: PoolKey) -> bool:
    """Whether the devices of a pool draw more from its counters than these have."""
    pool = inventory.pools.get(key)
    if pool is None or not any(each.spec.shared_counters for each in pool.slices):
        return False
    views = (pool.view(inventory.labels_of(node)) for node in pool.homes or inventory.nodes)
    view = next((each for each in views if each is not None), None)
    return view is not None and any(left < 0 for left in inventory.ledger.usage(view).left.values())
