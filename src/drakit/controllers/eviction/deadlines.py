"""When a pod must go because of its devices. Pure, on an inventory.

In:  what is allocated to a pod, with tolerations; taints of slices and of DeviceTaintRules.
Out: the moment of the eviction and the rules that ask for it; none when every taint that evicts is tolerated for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

import msgspec

from drakit.allocator import Inventory, Pool
from drakit.api import Device, DeviceRequestAllocationResult, DeviceTaint, ResourceSlice
from drakit.api.objects.slices import ResourcePool, ResourceSliceSpec
from drakit.base.taints import NO_EXECUTE
from drakit.controllers.tolerations import moment_after, seconds_on_device

replace = msgspec.structs.replace
Result = DeviceRequestAllocationResult


class Eviction(msgspec.Struct, frozen=True):
    """`rules` are the names of those DeviceTaintRules of which each alone would evict, now or later."""

    at: datetime
    rules: frozenset[str] = frozenset()


class Origin(msgspec.Struct, frozen=True):
    """A taint on a device; `rule` is empty when the device's own slice has it."""

    taint: DeviceTaint
    rule: str
    since: str | None


def eviction(inventory: Inventory, results: Iterable[Result], *, as_if: str = "") -> Eviction | None:
    """When whoever uses these devices must go. `as_if` names a rule whose taint counts as NoExecute."""
    moments: list[tuple[datetime, str]] = []
    for result in results:
        for origin in taints_of(inventory, result):
            taint = replace(origin.taint, effect=NO_EXECUTE) if as_if and origin.rule == as_if else origin.taint
            if taint.effect != NO_EXECUTE:
                continue
            seconds = seconds_on_device(result.tolerations, taint)
            if seconds is not None:
                moments.append((moment_after(origin.since, seconds), origin.rule))
    if not moments:
        return None
    return Eviction(min(moments)[0], frozenset(rule for _, rule in moments if rule))


def taints_of(inventory: Inventory, result: Result) -> Iterator[Origin]:
    """The taints of an allocated device, also of one that is published no more: rules still name it."""
    each, device, pool = _published(inventory, result)
    shape = pool.settings.shapes.of(result.driver, device)
    names = {id(rule.spec.taint): name for name, rule in inventory.rules.items()}
    for taint in pool.settings.taints_of(each, device, shape):
        yield Origin(taint, names.get(id(taint), ""), taint.time_added or each.metadata.creation_timestamp)


def _published(inventory: Inventory, result: Result) -> tuple[ResourceSlice, Device, Pool]:
    pool = inventory.pools.get((result.driver, result.pool))
    for each in current(pool) if pool is not None else ():
        for device in each.spec.devices:
            if device.name == result.device and pool is not None:
                return each, device, pool
    bare = Device(name=result.device)
    spec = ResourceSliceSpec(driver=result.driver, pool=ResourcePool(name=result.pool), all_nodes=True, devices=(bare,))
    alone = ResourceSlice(spec=spec)
    if pool is None:
        scratch = inventory.fork()
        scratch.put_slice(alone)
        pool = scratch.pools[result.driver, result.pool]
    return alone, bare, pool


def current(pool: Pool) -> list[ResourceSlice]:
    """The slices of a pool's newest generation."""
    newest = max(each.spec.pool.generation for each in pool.slices)
    return [each for each in pool.slices if each.spec.pool.generation == newest]


def published_by(inventory: Inventory, rule: str) -> int:
    """How many published devices a rule selects."""
    return sum(
        any(origin.rule == rule for origin in taints_of(inventory, _as_result(pool, device)))
        for pool in inventory.pools.values()
        for each in current(pool)
        for device in each.spec.devices
    )


def _as_result(pool: Pool, device: Device) -> Result:
    return Result(driver=pool.key[0], pool=pool.key[1], device=device.name)
