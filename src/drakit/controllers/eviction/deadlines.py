"""When a pod must go because of its devices. Pure, on an inventory.

In:  what is allocated to a pod, with tolerations; taints of slices and of DeviceTaintRules.
Out: the moment of the eviction and the rules that ask for it; none when every taint that evicts is tolerated for ever.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from drakit.allocator import Inventory, Pool, current, taints_of
from drakit.api import Device, DeviceRequestAllocationResult
from drakit.base.taints import NO_EXECUTE
from drakit.controllers.tolerations import moment_after, seconds_on_device

replace = msgspec.structs.replace
Result = DeviceRequestAllocationResult


class Eviction(msgspec.Struct, frozen=True):
    """`rules` are the names of those DeviceTaintRules of which each alone would evict, now or later."""

    at: datetime
    rules: frozenset[str] = frozenset()


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
