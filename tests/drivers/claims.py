"""Claims for drivers, as the kit hands them over."""

from __future__ import annotations

from typing import Any

from drakit.api import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ObjectMeta,
    OpaqueDeviceConfiguration,
    Quantity,
    ResourceClaim,
    ResourceClaimStatus,
)
from drakit.driverkit import AllocatedClaim, Driver, PreparedClaim, PreparedDevice
from drakit.driverkit.claims import allocated_claim

NODE = "node-1"


def allocated(
    driver: Driver, uid: str, *devices: str, config: Any = None, source: str = "FromClaim", **fields: Any
) -> AllocatedClaim:
    """A claim that was given these devices; `fields` go into every result."""
    results = tuple(
        DeviceRequestAllocationResult(request="device", driver=driver.name, pool=NODE, device=each, **fields)
        for each in devices
    )
    opaque = OpaqueDeviceConfiguration(driver=driver.name, parameters=config)
    configs = (DeviceAllocationConfiguration(source=source, opaque=opaque),) if config else ()
    allocation = AllocationResult(devices=DeviceAllocationResult(results=results, config=configs))
    claim = ResourceClaim(
        metadata=ObjectMeta(name=uid, namespace="default", uid=uid), status=ResourceClaimStatus(allocation=allocation)
    )
    return allocated_claim(claim, driver.name, driver.configs)


def amount(number: int, name: str) -> dict[str, Quantity]:
    return {name: Quantity.of(number)}


async def prepared(driver: Driver, claim: AllocatedClaim) -> list[PreparedDevice]:
    """The devices; raise what the driver answered instead."""
    answer = (await driver.prepare([claim]))[claim.uid]
    if isinstance(answer, Exception):
        raise answer
    return list(answer)


async def unprepare(driver: Driver, claim: AllocatedClaim) -> None:
    answers = await driver.unprepare([PreparedClaim(ref=claim.ref)])
    assert not (answers or {}).get(claim.uid)
