"""Devices that have to be made ready for a node, and how far they are. Pure.

In:  a claim: what it was allocated and what is known of those devices.
Out: ready, not yet, or why never.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from drakit.api.objects.claims import AllocatedDeviceStatus, DeviceRequestAllocationResult, ResourceClaim
from drakit.api.objects.meta import find_condition
from drakit.api.requests import results_of
from drakit.api.text.times import parse_time
from drakit.base.errors import DrakitError


class DeviceBindingFailed(DrakitError):
    """A device cannot be made ready."""


class DeviceBindingTimedOut(DrakitError):
    """A device was not made ready in time."""


def conditional(claim: ResourceClaim) -> Iterable[DeviceRequestAllocationResult]:
    """The allocated devices that have conditions to meet."""
    return (each for each in results_of(claim) if each.binding_conditions)


def has_conditions(claim: ResourceClaim) -> bool:
    return any(True for _ in conditional(claim))


def is_ready(claim: ResourceClaim) -> bool:
    """Whether every condition of every device is met. Raise DeviceBindingFailed when a device says it never will."""
    ready = True
    for result in conditional(claim):
        status = _status_of(claim, result)
        if status is None:
            ready = False
            continue
        for name in result.binding_failure_conditions:
            found = find_condition(status.conditions, name)
            if found is not None and found.status == "True":
                why = f'claim={claim.metadata.name}, reason={found.reason}, message="{found.message}"'
                raise DeviceBindingFailed(f"device binding failed: {why}")
        ready = ready and all(_is_true(status, name) for name in result.binding_conditions)
    return ready


def deadline(claim: ResourceClaim, timeout: float) -> datetime | None:
    """When a claim with conditions has waited long enough; none when it has none, or nobody knows since when."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None or not has_conditions(claim):
        return None
    return parse_time(allocation.allocation_timestamp) + timedelta(seconds=timeout)


def is_hopeless(claim: ResourceClaim, timeout: float, now: datetime) -> bool:
    """Whether an allocated claim cannot be used as it is: a device failed, or was not ready in time."""
    try:
        if is_ready(claim):
            return False
    except DeviceBindingFailed:
        return True
    end = deadline(claim, timeout)
    return end is not None and end < now


def timed_out(claim: ResourceClaim) -> DeviceBindingTimedOut:
    return DeviceBindingTimedOut(f"device binding timeout: claim={claim.metadata.name}")


def _status_of(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> AllocatedDeviceStatus | None:
    wanted = (result.driver, result.pool, result.device)
    found = [each for each in claim.status.devices if (each.driver, each.pool, each.device) == wanted]
    # Shares of one device report each for itself; a driver that names no share means them all.
    return next((each for each in found if each.share_id in (None, result.share_id)), None)


def _is_true(status: AllocatedDeviceStatus, name: str) -> bool:
    found = find_condition(status.conditions, name)
    return found is not None and found.status == "True"
