"""What a driver says in the status of claims: conditions, data, network data, per device.

In:  prepared devices, or conditions of a device that a pod waits for.
Out: `status.devices`, written by server-side apply under the driver's name: it owns the entries of its devices,
     and nobody else's are touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from drakit.api import (
    AllocatedDeviceStatus,
    Condition,
    NetworkDeviceData,
    ResourceClaim,
    find_condition,
    format_time,
    to_plain,
)
from drakit.base.clock import Clock
from drakit.base.errors import Conflict
from drakit.client import CLAIMS, Client
from drakit.driverkit.claims import AllocatedDevice, ClaimRef, PreparedDevice

TRUE = "True"
FALSE = "False"
_TRIES = 5


def has_status(device: PreparedDevice) -> bool:
    return bool(device.conditions or device.network_data or device.data is not None)


def status_of(driver: str, device: PreparedDevice) -> AllocatedDeviceStatus:
    """The entry of a prepared device."""
    return AllocatedDeviceStatus(
        driver=driver,
        pool=device.pool,
        device=device.device,
        share_id=device.share_id,
        conditions=device.conditions,
        data=device.data,
        network_data=device.network_data,
    )


def device_status(
    driver: str,
    device: AllocatedDevice | PreparedDevice,
    *,
    conditions: Iterable[Condition] = (),
    data: Any = None,
    network_data: NetworkDeviceData | None = None,
) -> AllocatedDeviceStatus:
    """The entry of a device, with what the driver has to say about it."""
    return AllocatedDeviceStatus(
        driver=driver,
        pool=device.pool,
        device=device.device,
        share_id=device.share_id,
        conditions=tuple(conditions),
        data=data,
        network_data=network_data,
    )


async def apply_status(
    client: Client, driver: str, ref: ClaimRef, entries: Iterable[AllocatedDeviceStatus]
) -> ResourceClaim | None:
    """Write `status.devices` entries of a claim. Entries for other devices of the driver stay.

    None when the claim is gone, replaced or not allocated: nobody is left to be told. Raise what the server says.
    """
    told = list(entries)
    for attempt in range(_TRIES):
        claim = await client.find(CLAIMS, ref.name, namespace=ref.namespace)
        if claim is None or claim.metadata.uid != ref.uid or claim.status.allocation is None:
            return None
        # Apply drops what it owned and does not repeat, so all entries of this driver are sent, old ones too.
        ours = [each for each in claim.status.devices if each.driver == driver]
        wanted = [_with_times(each, ours, client.clock) for each in _merged(ours, told)]
        # Nothing to write: an update without a change would still cost a request and wake up watchers.
        if wanted == ours:
            return claim
        try:
            document = _document(ref, wanted, await client.version_of(CLAIMS))
            applied: ResourceClaim = await client.apply(
                document, manager=driver, force=True, subresource="status", of=claim
            )
        # Somebody changed the claim since it was read: merge again with what is there now.
        except Conflict:
            if attempt == _TRIES - 1:
                raise
        else:
            return applied
    raise AssertionError("unreachable")


async def set_binding_conditions(
    client: Client,
    driver: str,
    ref: ClaimRef,
    device: AllocatedDevice,
    conditions: Mapping[str, bool],
    *,
    reason: str = "Ready",
    message: str = "",
) -> ResourceClaim | None:
    """Tell the scheduler, which waits for it before it binds the pod, what became of a device."""
    listed = [
        Condition(type=name, status=TRUE if value else FALSE, reason=reason, message=message)
        for name, value in conditions.items()
    ]
    return await apply_status(client, driver, ref, [device_status(driver, device, conditions=listed)])


def _key(entry: AllocatedDeviceStatus) -> tuple[str, str, str, str | None]:
    return entry.driver, entry.pool, entry.device, entry.share_id


def _merged(
    before: Iterable[AllocatedDeviceStatus], told: Iterable[AllocatedDeviceStatus]
) -> Iterable[AllocatedDeviceStatus]:
    """Entries of other devices stay; of one device, conditions are merged by type, data is replaced when given."""
    merged = {_key(each): each for each in before}
    for entry in told:
        old = merged.get(_key(entry))
        if old is not None:
            types = {each.type for each in entry.conditions}
            kept = tuple(each for each in old.conditions if each.type not in types)
            entry = msgspec.structs.replace(
                entry,
                conditions=(*kept, *entry.conditions),
                data=old.data if entry.data is None else entry.data,
                network_data=old.network_data if entry.network_data is None else entry.network_data,
            )
        merged[_key(entry)] = entry
    return merged.values()


def _with_times(
    entry: AllocatedDeviceStatus, before: Iterable[AllocatedDeviceStatus], clock: Clock
) -> AllocatedDeviceStatus:
    """`lastTransitionTime` moves when the status of a condition does."""
    old = next((each for each in before if _key(each) == _key(entry)), None)
    known = old.conditions if old else ()
    return msgspec.structs.replace(entry, conditions=tuple(_with_time(each, known, clock) for each in entry.conditions))


def _with_time(condition: Condition, known: tuple[Condition, ...], clock: Clock) -> Condition:
    old = find_condition(known, condition.type)
    if old is not None and old.status == condition.status:
        return msgspec.structs.replace(condition, last_transition_time=old.last_transition_time)
    if condition.last_transition_time:
        return condition
    return msgspec.structs.replace(condition, last_transition_time=format_time(clock.now()))


def _document(ref: ClaimRef, entries: Iterable[AllocatedDeviceStatus], version: str) -> dict[str, Any]:
    """Entries look the same in every version."""
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaim",
        "metadata": {"name": ref.name, "namespace": ref.namespace},
        "status": {"devices": [to_plain(each) for each in entries]},
    }
