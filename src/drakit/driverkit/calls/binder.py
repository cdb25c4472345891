"""Binding conditions: make devices reachable that a pod waits for, before it is bound to its node.

In:  claims with an allocation whose devices have binding conditions, and whose pools this driver publishes.
Out: the author's `bind`, and then the conditions in the claim's status that the scheduler waits for.

A pool that several nodes reach is published by each of them; the one that the allocation is for binds its devices. What
was bound and never prepared is unprepared when the claim goes, loses its devices or gets others.
"""

from __future__ import annotations

import logging
from random import Random

from drakit.api import AllocatedDeviceStatus, DeviceRequestAllocationResult, ResourceClaim, results_of
from drakit.base.clock import Clock
from drakit.base.nodeselectors import matches
from drakit.client import CLAIMS, NODES, Client, Key
from drakit.driverkit.calls.inventory import PublishedDevices
from drakit.driverkit.calls.lifecycle import ClaimCalls
from drakit.driverkit.claims import AllocatedClaim, AllocatedDevice, ClaimRef, allocated_claim
from drakit.driverkit.conditions import TRUE, set_binding_conditions
from drakit.driverkit.driver import BindingFailed, Driver
from drakit.informers import Controller, Informers, Result

log = logging.getLogger("drakit.driverkit")


class DeviceBinder:
    def __init__(
        self,
        client: Client,
        driver: Driver,
        inventory: PublishedDevices,
        calls: ClaimCalls,
        clock: Clock,
        random: Random | None = None,
    ) -> None:
        self._client = client
        self._driver = driver
        self._inventory = inventory
        self._calls = calls
        self._bound: dict[Key, ClaimRef] = {}
        """Claims that this process has bound. The sweep finds those of an earlier process by their records."""
        self._informers = Informers(client, clock=clock, random=random)
        self._controller: Controller[Key] = Controller(f"binding of {driver.name}", self._reconcile, clock=clock)

    async def run(self) -> None:
        """Until cancelled."""
        self._informers.of(CLAIMS).enqueue(self._controller.queue.add)
        self._informers.start()
        try:
            await self._controller.run()
        finally:
            await self._informers.stop()

    async def _reconcile(self, key: Key) -> Result:
        found = self._informers.of(CLAIMS).cache.get(key)
        # First: a claim that was allocated anew may need the device that is given back here.
        await self._give_back(key, found)
        if found is None:
            return Result.done()
        waiting = {_key(each) for each in results_of(found) if self._is_waiting(found, each)}
        if waiting and await self._is_for_this_node(found):
            claim = allocated_claim(found, self._driver.name, self._driver.configs)
            # First on disk: after a crash somebody has to know that there is something to give back.
            await self._calls.note_binding(claim.ref)
            self._bound[key] = claim.ref
            for device in claim.devices:
                if _key(device) in waiting:
                    await self._bind(claim, device)
        return Result.done()

    def _is_waiting(self, claim: ResourceClaim, result: DeviceRequestAllocationResult) -> bool:
        """Whether the device is ours to bind, and nothing has been said about it yet."""
        if result.driver != self._driver.name or not result.binding_conditions:
            return False
        if not self._inventory.publishes(result.pool):
            return False
        said = (each for each in claim.status.devices if each.driver == result.driver and _key(each) == _key(result))
        true = {condition.type for each in said for condition in each.conditions if condition.status == TRUE}
        is_ready = true.issuperset(result.binding_conditions)
        return not (is_ready or true.intersection(result.binding_failure_conditions))

    async def _is_for_this_node(self, claim: ResourceClaim) -> bool:
        allocation = claim.status.allocation
        if allocation is None or allocation.node_selector is None:
            return True
        node = await self._client.find(NODES, self._driver.node_name)
        labels = node.view.metadata.labels if node is not None else {}
        return matches(allocation.node_selector, name=self._driver.node_name, labels=labels)

    async def _give_back(self, key: Key, claim: ResourceClaim | None) -> None:
        ref = self._bound.get(key)
        if ref is None or (claim is not None and claim.metadata.uid == ref.uid and await self._is_ours(claim)):
            return
        await self._calls.unbind(ref)
        self._bound.pop(key, None)

    async def _is_ours(self, claim: ResourceClaim) -> bool:
        """Whether a device of ours is allocated to the claim, for this node."""
        ours = [each for each in results_of(claim) if each.driver == self._driver.name]
        published = any(self._inventory.publishes(each.pool) for each in ours)
        return published and await self._is_for_this_node(claim)

    async def _bind(self, claim: AllocatedClaim, device: AllocatedDevice) -> None:
        name, client = self._driver.name, self._client
        try:
            await self._driver.bind(claim, device)
        except BindingFailed as error:
            failed = error.condition or next(iter(device.binding_failure_conditions), "")
            log.warning("binding failed claim=%s device=%s/%s: %s", claim, device.pool, device.device, error)
            if failed:
                await set_binding_conditions(
                    client, name, claim.ref, device, {failed: True}, reason=error.reason, message=str(error)
                )
        else:
            conditions = dict.fromkeys(device.binding_conditions, True)
            await set_binding_conditions(client, name, claim.ref, device, conditions)


def _key(
    device: DeviceRequestAllocationResult | AllocatedDevice | AllocatedDeviceStatus,
) -> tuple[str, str, str | None]:
    return device.pool, device.device, device.share_id
