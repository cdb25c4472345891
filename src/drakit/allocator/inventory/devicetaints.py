"""The taints of devices that are allocated: those that they have now, not those at the time of the allocation.

In:  an inventory, and what is allocated.
Out: each taint with where it comes from; and the one that keeps further pods away, if there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from drakit.allocator.inventory.inventory import Inventory
from drakit.allocator.inventory.pools import Pool
from drakit.api import Device, DeviceRequestAllocationResult, DeviceTaint, ResourceSlice
from drakit.api.objects.slices import ResourcePool, ResourceSliceSpec
from drakit.base.taints import untolerated


class TaintOrigin(msgspec.Struct, frozen=True):
    """A taint on a device; `rule` is empty when the device's own slice has it."""

    taint: DeviceTaint
    rule: str
    since: str | None


def taints_of(inventory: Inventory, result: DeviceRequestAllocationResult) -> Iterator[TaintOrigin]:
    """The taints of an allocated device. One that is no longer published may still have taints from rules."""
    known = inventory.pools.get((result.driver, result.pool))
    # The common case is that nothing is tainted: then the device need not be looked up.
    if not inventory.rules and (known is None or not known.has_taints):
        return
    each, device, pool = _published(inventory, result)
    shape = pool.settings.shapes.of(result.driver, device)
    # By identity: a rule and a slice may have equal taints, and only one of them is the origin.
    names = {id(rule.spec.taint): name for name, rule in inventory.rules.items()}
    for taint in pool.settings.taints_of(each, device, shape):
        yield TaintOrigin(taint, names.get(id(taint), ""), taint.time_added or each.metadata.creation_timestamp)


def repelling_taint(
    inventory: Inventory, results: Iterable[DeviceRequestAllocationResult]
) -> tuple[DeviceRequestAllocationResult, DeviceTaint] | None:
    """The first device with a taint that keeps further pods away, and that taint."""
    if not inventory.gates.enabled("DRADeviceTaints"):
        return None
    for result in results:
        taint = untolerated((origin.taint for origin in taints_of(inventory, result)), result.tolerations)
        if taint is not None:
            return result, taint
    return None


def current(pool: Pool) -> list[ResourceSlice]:
    """The slices of a pool's newest generation."""
    newest = max(each.spec.pool.generation for each in pool.slices)
    return [each for each in pool.slices if each.spec.pool.generation == newest]


def _published(inventory: Inventory, result: DeviceRequestAllocationResult) -> tuple[ResourceSlice, Device, Pool]:
    pool = inventory.pools.get((result.driver, result.pool))
    for each in current(pool) if pool is not None else ():
        for device in each.spec.devices:
            if device.name == result.device and pool is not None:
                return each, device, pool
    # The device is not published any more. Rules that name it still apply, so it is looked at as a bare device.
    bare = Device(name=result.device)
    spec = ResourceSliceSpec(driver=result.driver, pool=ResourcePool(name=result.pool), all_nodes=True, devices=(bare,))
    alone = ResourceSlice(spec=spec)
    if pool is None:
        scratch = inventory.fork()
        scratch.put_slice(alone)
        pool = scratch.pools[result.driver, result.pool]
    return alone, bare, pool
