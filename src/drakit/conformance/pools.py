"""Pools: what a driver's slices make up together.

In:  the slices of one driver.
Out: which pools are incomplete and why; the devices of a pool in the order in which they are allocated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from drakit.api import ResourceSlice


def by_pool(slices: Iterable[ResourceSlice]) -> dict[str, list[ResourceSlice]]:
    """In the order of their names, which is the order in which a scheduler looks at them."""
    pools: dict[str, list[ResourceSlice]] = {}
    for each in sorted(slices, key=lambda each: each.metadata.name):
        pools.setdefault(each.spec.pool.name, []).append(each)
    return pools


def incomplete_pools(slices: Iterable[ResourceSlice]) -> list[str]:
    """Why pools are not complete; nothing when all are."""
    return [reason for name, members in by_pool(slices).items() for reason in _reasons(name, members)]


def _reasons(name: str, members: list[ResourceSlice]) -> Iterator[str]:
    newest = max(each.spec.pool.generation for each in members)
    current = [each for each in members if each.spec.pool.generation == newest]
    if len(current) < len(members):
        yield f"pool {name} still has slices of generations before {newest}"
    # Every slice has to agree on the count, and the count with the slices that there are.
    counts = {each.spec.pool.resource_slice_count for each in current}
    if counts != {len(current)}:
        told = " and ".join(map(str, sorted(counts)))
        yield f"pool {name} has {len(current)} slices of generation {newest}, which say resourceSliceCount {told}"
    names = [device.name for each in current for device in each.spec.devices]
    for twice in sorted({each for each in names if names.count(each) > 1}):
        yield f"pool {name} has two devices {twice}"


def order_of(slices: Iterable[ResourceSlice]) -> dict[str, list[str]]:
    """Names of devices per pool, in the order of allocation."""
    return {
        name: [device.name for each in members for device in each.spec.devices]
        for name, members in by_pool(slices).items()
    }
