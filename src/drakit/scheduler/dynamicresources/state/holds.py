"""Devices that are kept for pods which others made room for.

In:  what preemption decides that a pod is to get, once those are gone who have it now.
Out: entries in the ledger, so that these devices are nobody else's; and, for pods that need not care, an inventory
     without them: the pod itself, and pods of the same or of higher priority.

While its pod is being bound, a hold rests: the allocation in flight stands for it. A pod that takes devices of a hold
which it need not care about ends it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from drakit.allocator import Inventory
from drakit.api.objects.claims import AllocationResult, DeviceRequestAllocationResult, ResourceClaim
from drakit.api.objects.pods import Pod

Allocations = Sequence[tuple[ResourceClaim, AllocationResult]]
_PREFIX = "held:"


class Hold(msgspec.Struct, frozen=True):
    """`claims` stand for those of the pod, under uids of their own: what is stored for these counts beside."""

    priority: int
    claims: tuple[ResourceClaim, ...]
    allocations: tuple[AllocationResult, ...]

    @property
    def pools(self) -> set[tuple[str, str]]:
        return {(each.driver, each.pool) for each in _results(self.allocations)}

    @property
    def devices(self) -> set[tuple[str, str, str]]:
        return {(each.driver, each.pool, each.device) for each in _results(self.allocations)}

    def begin(self, inventory: Inventory) -> None:
        for claim, allocation in zip(self.claims, self.allocations, strict=True):
            inventory.begin_allocation(claim, allocation)

    def end(self, inventory: Inventory) -> None:
        for claim in self.claims:
            inventory.end_allocation(claim.metadata.uid)


class Holds:
    """Invariant: the ledger has the devices of every hold that does not rest."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._known: dict[str, Hold] = {}
        self._resting: set[str] = set()

    def put(self, pod: Pod, allocations: Allocations) -> None:
        """Keep devices for a pod, instead of what was kept for it before."""
        self.drop(pod.metadata.uid)
        claims = tuple(_standing_for(claim) for claim, _ in allocations)
        hold = Hold(pod.spec.priority or 0, claims, tuple(each for _, each in allocations))
        self._known[pod.metadata.uid] = hold
        hold.begin(self._inventory)

    def drop(self, uid: str) -> bool:
        """Whether anything was kept for that pod."""
        hold = self._known.pop(uid, None)
        if hold is not None and uid not in self._resting:
            hold.end(self._inventory)
        self._resting.discard(uid)
        return hold is not None

    def rest(self, uid: str) -> None:
        if uid in self._known and uid not in self._resting:
            self._known[uid].end(self._inventory)
            self._resting.add(uid)

    def resume(self, uid: str) -> None:
        if uid in self._resting:
            self._known[uid].begin(self._inventory)
            self._resting.discard(uid)

    def seen_by(self, pod: Pod) -> Inventory:
        """The inventory, without the devices that are kept and that the pod may take all the same."""
        return self._without(self._ignored(pod)) if self._known else self._inventory

    def left_out(self) -> Inventory:
        """The inventory as claims alone make it: who waits for devices does not own them."""
        awake = {uid: hold for uid, hold in self._known.items() if uid not in self._resting}
        return self._without(awake)

    def _without(self, holds: Mapping[str, Hold]) -> Inventory:
        if not holds:
            return self._inventory
        fork = self._inventory.fork()
        for hold in holds.values():
            hold.end(fork)
        return fork

    def taken(self, pod: Pod, allocations: Iterable[AllocationResult]) -> None:
        """A pod takes devices: what it was to get rests, and what it takes from others is not theirs any more."""
        self.rest(pod.metadata.uid)
        results = _results(allocations) if self._known else []
        devices = {(each.driver, each.pool, each.device) for each in results}
        for uid, hold in self._ignored(pod).items() if devices else ():
            if uid != pod.metadata.uid and (hold.devices & devices or self._share_counters(hold, devices)):
                self.drop(uid)

    def _ignored(self, pod: Pod) -> dict[str, Hold]:
        own, priority = pod.metadata.uid, pod.spec.priority or 0
        awake = [(uid, hold) for uid, hold in self._known.items() if uid not in self._resting]
        return {uid: hold for uid, hold in awake if uid == own or hold.priority <= priority}

    def _share_counters(self, hold: Hold, devices: set[tuple[str, str, str]]) -> bool:
        shared = hold.pools & {(driver, pool) for driver, pool, _ in devices}
        pools = [pool for key in shared if (pool := self._inventory.pools.get(key)) is not None]
        return any(each.spec.shared_counters for pool in pools for each in pool.slices)


def _standing_for(claim: ResourceClaim) -> ResourceClaim:
    return replace(claim, metadata=replace(claim.metadata, uid=_PREFIX + claim.metadata.uid))


def _results(allocations: Iterable[AllocationResult]) -> list[DeviceRequestAllocationResult]:
    return [result for each in allocations for result in each.devices.results if not result.admin_access]
