"""Answer ResourcePoolStatusRequests: what is in the pools of a driver, and how much of it is free.

In:  requests without a status; slices, claims and taints as they are at that moment.
Out: the status, written once: counts per pool, the first `limit` of them, and Complete or Failed. An hour after its
     answer, the request is deleted.

A pool that cannot be trusted (slices missing, or in disagreement) has a validation error in place of counts.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from datetime import timedelta

import msgspec

from drakit.allocator import CounterKey, Inventory, Pool, counter_use, current, taints_of
from drakit.api import (
    POOL_STATUS_LIMIT,
    Condition,
    DeviceClass,
    DeviceTaintRule,
    PoolStatus,
    ResourceClaim,
    ResourcePoolStatusRequest,
    ResourcePoolStatusRequestStatus,
    ResourceSlice,
    results_of,
)
from drakit.api.objects.claims import DeviceRequestAllocationResult
from drakit.api.text.times import format_time, parse_time
from drakit.base.errors import InvalidObject
from drakit.base.taints import BLOCKING_EFFECTS
from drakit.client import CLAIMS, CLASSES, POOL_STATUS_REQUESTS, SLICES, TAINT_RULES, Key, V
from drakit.controllers.context import ControllerContext
from drakit.informers import Informer, Result

log = logging.getLogger("drakit.controllers")

NAME = "resource_pool_status_request"
ACCOUNT = "resourcepoolstatusrequest-controller"
KEPT = timedelta(hours=1)
_LONGEST_ERROR = 256


class PoolStatusController:
    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client_of(ACCOUNT)
        self._clock = context.clock
        self._gates = context.gates
        self.loop = context.loop(NAME, self.reconcile)
        self.loops = (self.loop,) if context.gates.enabled("DRAResourcePoolStatus") else ()
        if not self.loops:
            return
        informers = context.informers
        self._requests: Informer[ResourcePoolStatusRequest] = informers.of(POOL_STATUS_REQUESTS)
        self._slices: Informer[ResourceSlice] = informers.of(SLICES)
        self._claims: Informer[ResourceClaim] = informers.of(CLAIMS)
        self._classes: Informer[DeviceClass] = informers.of(CLASSES)
        ruled = context.gates.enabled("DRADeviceTaintRules")
        self._rules: Informer[DeviceTaintRule] | None = informers.of(TAINT_RULES) if ruled else None
        self._requests.enqueue(self.loop.queue.add)

    async def reconcile(self, key: Key) -> Result:
        request = self._requests.cache.get(key)
        if request is None or request.metadata.deletion_timestamp is not None:
            return Result.done()
        if request.status is not None:
            return await self._expire(request)
        try:
            await self._write(request, self._answer(request))
        except InvalidObject as error:
            await self._write(request, self._failed(str(error)))
        log.log(V[3], "pool status %s is answered", key)
        return Result.done()

    async def _expire(self, request: ResourcePoolStatusRequest) -> Result:
        answered = request.metadata.creation_timestamp
        for condition in request.status.conditions if request.status else ():
            answered = condition.last_transition_time or answered
        left = (parse_time(answered or "") + KEPT - self._clock.now()).total_seconds()
        if left > 0:
            return Result.after(left)
        await self._client.delete_object(request)
        return Result.done()

    async def _write(self, request: ResourcePoolStatusRequest, status: ResourcePoolStatusRequestStatus) -> None:
        await self._client.update_status(msgspec.structs.replace(request, status=status))

    def _answer(self, request: ResourcePoolStatusRequest) -> ResourcePoolStatusRequestStatus:
        wanted = request.spec
        inventory = self._inventory(wanted.driver)
        pools = [
            pool
            for key, pool in sorted(inventory.pools.items())
            if wanted.pool_name is None or key[1] == wanted.pool_name
        ]
        listed = pools[: POOL_STATUS_LIMIT if wanted.limit is None else wanted.limit]
        used = self._used(wanted.driver)
        found = tuple(pool_status(inventory, pool, used) for pool in listed)
        broken = sum(each.validation_error is not None for each in found)
        message = f"Calculated status for {len(found)} pools" + (f" ({broken} incomplete)" if broken else "")
        done = self._condition("Complete", "CalculationComplete", message)
        return ResourcePoolStatusRequestStatus(pool_count=len(pools), pools=found, conditions=(done,))

    def _failed(self, message: str) -> ResourcePoolStatusRequestStatus:
        return ResourcePoolStatusRequestStatus(
            pool_count=0, conditions=(self._condition("Failed", "CalculationFailed", message),)
        )

    def _condition(self, type_: str, reason: str, message: str) -> Condition:
        now = format_time(self._clock.now())
        return Condition(type=type_, status="True", last_transition_time=now, reason=reason, message=message)

    def _inventory(self, driver: str) -> Inventory:
        inventory = Inventory(self._gates)
        for each in self._classes.cache:
            inventory.put_class(each)
        for rule in self._rules.cache if self._rules is not None else ():
            inventory.put_rule(rule)
        for each_slice in self._slices.cache:
            if each_slice.spec.driver == driver:
                inventory.put_slice(each_slice)
        return inventory

    def _used(self, driver: str) -> set[tuple[str, str]]:
        """Pool and name of the devices that claims hold; who only administers a device does not hold it."""
        return {
            (each.pool, each.device)
            for claim in self._claims.cache
            for each in results_of(claim)
            if each.driver == driver and not each.admin_access
        }


def pool_status(inventory: Inventory, pool: Pool, used: set[tuple[str, str]]) -> PoolStatus:
    driver, name = pool.key
    slices = current(pool)
    generation = slices[0].spec.pool.generation
    nodes = {each.spec.node_name for each in slices}
    node = nodes.pop() if len(nodes) == 1 else None
    status = PoolStatus(driver=driver, pool_name=name, generation=generation, node_name=node)
    names = [device.name for each in slices for device in each.spec.devices]
    if wrong := problem(slices, names):
        told = f"pool {driver}/{name} {wrong}"[:_LONGEST_ERROR]
        return msgspec.structs.replace(status, validation_error=told)
    held = [each for each in names if (name, each) in used]
    free = [each for each in names if (name, each) not in used]
    short = set(without_counters(inventory, slices, set(held)))
    blocked = sum(each in short or is_tainted(inventory, pool, each) for each in free)
    return msgspec.structs.replace(
        status,
        resource_slice_count=len(slices),
        total_devices=len(names),
        allocated_devices=len(held),
        available_devices=len(free) - blocked,
        unavailable_devices=blocked,
    )


def problem(slices: list[ResourceSlice], names: Iterable[str]) -> str:
    """Why a pool's slices of one generation cannot be trusted; empty when they can."""
    counts = sorted({each.spec.pool.resource_slice_count for each in slices})
    if len(counts) > 1:
        return f"is invalid: slices disagree on resourceSliceCount: {', '.join(map(str, counts))}"
    if len(slices) != counts[0]:
        state, generation = "incomplete" if len(slices) < counts[0] else "invalid", slices[0].spec.pool.generation
        return f"is {state}: observed {len(slices)}/{counts[0]} slices at generation {generation}"
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return f"is invalid: duplicate device name {name}"
        seen.add(name)
    return ""


def without_counters(inventory: Inventory, slices: list[ResourceSlice], held: set[str]) -> Iterator[str]:
    """The devices for which the pool's counters do not suffice, when those are in use."""
    left: dict[CounterKey, int] = {}
    for each in slices:
        for shared in each.spec.shared_counters:
            left |= {(shared.name, name): counter.value.nanos for name, counter in shared.counters.items()}
    needs = {device.name: counter_use(device) for each in slices for device in each.spec.devices}
    for name in held:
        for counter, amount in needs[name].items():
            left[counter] = left.get(counter, 0) - amount
    counted = inventory.gates.enabled("DRAPartitionableDevices")
    for name, need in needs.items():
        if need and (not counted or any(amount > left.get(counter, 0) for counter, amount in need.items())):
            yield name


def is_tainted(inventory: Inventory, pool: Pool, device: str) -> bool:
    """Whether a taint keeps claims away from a device."""
    result = DeviceRequestAllocationResult(driver=pool.key[0], pool=pool.key[1], device=device)
    return any(origin.taint.effect in BLOCKING_EFFECTS for origin in taints_of(inventory, result))
