"""A cluster that is restarted with other gates over the same store; and what must hold at all times.

`over_allocated` looks at nothing but the objects in the store, and adds up naively: it knows neither ledger nor gates.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from drakit.api import Device, ResourceClaim, ResourceSlice
from drakit.base.gates import GATES, FeatureGates
from drakit.base.quantity import ZERO, Quantity
from drakit.client import CLAIMS, PODS, SLICES
from drakit.controllers.composition import ALL
from drakit.simulate.loops import LoopClock
from drakit.store import MemoryStore
from tests.builders.cluster import staged
from tests.builders.schedulercluster import SchedulingCluster

Plain = dict[str, Any]
Holders = Mapping[tuple[str, str, str], list[Any]]
Amounts = dict[Any, Quantity]


class Lives:
    """The lives of a cluster, one after the other."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._number = 0

    @asynccontextmanager
    async def life(self, gates: FeatureGates) -> AsyncIterator[SchedulingCluster]:
        """Server, controllers and scheduler, until they are killed."""
        self._number += 1
        async with staged(SchedulingCluster, gates, store=self._store, seed=self._number) as it:
            await it.start(ALL)
            await it.start_scheduler(seed=self._number)
            yield it


@asynccontextmanager
async def lives() -> AsyncIterator[Lives]:
    async with MemoryStore(clock=LoopClock(asyncio.get_running_loop())) as store:
        yield Lives(store)


def without(gate: str) -> FeatureGates:
    """Every gate but this one and those that need it."""
    off = {gate}
    while more := {name for name, each in GATES.items() if off & {*each.needs}} - off:
        off |= more
    return FeatureGates.of({name: name not in off for name, each in GATES.items() if not each.locked})


async def remembered(it: SchedulingCluster) -> dict[str, Any]:
    """Where pods are, and what claims hold for whom."""
    found: dict[str, Any] = {}
    for pod in await it.all(PODS):
        found[f"pod {pod.metadata.name}"] = (pod.metadata.uid, pod.spec.node_name, pod.status.phase)
    for claim in await it.all(CLAIMS):
        found[f"claim {claim.metadata.name}"] = (claim.metadata.uid, claim.status.allocation, claim.status.reserved_for)
    return found


async def over_allocated(it: SchedulingCluster) -> list[str]:
    """Everything that is given to more users than it can serve."""
    slices: list[ResourceSlice] = await it.all(SLICES)
    devices = {
        (each.spec.driver, each.spec.pool.name, device.name): device for each in slices for device in each.spec.devices
    }
    holders: defaultdict[tuple[str, str, str], list[Any]] = defaultdict(list)
    for claim in await it.all(CLAIMS):
        for result in _results(claim):
            holders[result.driver, result.pool, result.device].append(result)
    return [*_twice(holders), *_overdrawn(holders, devices), *_drained(holders, devices, slices)]


def _results(claim: ResourceClaim) -> Iterator[Any]:
    allocation = claim.status.allocation
    yield from (each for each in (allocation.devices.results if allocation else ()) if not each.admin_access)


def _twice(holders: Holders) -> Iterator[str]:
    for key, results in holders.items():
        shares = [each.share_id for each in results]
        if len(results) > 1 and (None in shares or len({*shares}) < len(shares)):
            yield f"device {'/'.join(key)} is given {len(results)} times"


def _overdrawn(holders: Holders, devices: Mapping[tuple[str, str, str], Device]) -> Iterator[str]:
    for key, results in holders.items():
        for name, capacity in devices[key].capacity.items():
            taken = sum((each.consumed_capacity.get(name, ZERO) for each in results), ZERO)
            if taken > capacity.value:
                yield f"device {'/'.join(key)}: {taken} of {capacity.value} {name} is taken"


def _drained(
    holders: Holders, devices: Mapping[tuple[str, str, str], Device], slices: list[ResourceSlice]
) -> Iterator[str]:
    left: Amounts = {
        (each.spec.driver, each.spec.pool.name, group.name, name): counter.value
        for each in slices
        for group in each.spec.shared_counters
        for name, counter in group.counters.items()
    }
    for driver, pool, device in holders:
        for use in devices[driver, pool, device].consumes_counters:
            for name, counter in use.counters.items():
                left[driver, pool, use.counter_set, name] -= counter.value
    yield from (f"counter {'/'.join(key)} is {amount}" for key, amount in left.items() if amount < ZERO)
