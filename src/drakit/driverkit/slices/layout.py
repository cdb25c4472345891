"""Which device stands in which slice.

In:  a pool, and how its slices are cut now.
Out: the contents of its slices, in the author's order, within the limits of the API. Cuts stay where they are as long
     as they can: a device that changes, comes or goes touches one slice. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from drakit.api import CounterSet, Device, DeviceAttribute
from drakit.driverkit.pools import DevicePool

DEVICES = 128
ADVANCED_DEVICES = 64
"""As many may be in a slice in which one device has taints, counters or list attributes."""
COUNTER_SETS = 8


class SliceContent(msgspec.Struct, frozen=True):
    """What one slice holds: devices, or counter sets, never both."""

    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


def cut(pool: DevicePool, before: Sequence[Sequence[str]] = ()) -> list[SliceContent]:
    """The contents of the pool's slices; at least one, since a pool without any is unknown to everybody.

    `before` are the names of devices in each slice that has devices now, in order.
    """
    counters = [
        SliceContent(shared_counters=pool.shared_counters[start : start + COUNTER_SETS])
        for start in range(0, len(pool.shared_counters), COUNTER_SETS)
    ]
    devices = _along(pool.devices, before) or _anew(pool.devices)
    return [*counters, *(SliceContent(devices=tuple(each)) for each in devices)] or [SliceContent()]


def _along(devices: Sequence[Device], before: Sequence[Sequence[str]]) -> list[list[Device]]:
    """Cut where it was cut before; nothing when that does not work any more."""
    if not before:
        return []
    home = {name: index for index, names in enumerate(before) for name in names}
    chunks: list[list[Device]] = [[] for _ in before]
    at = 0
    for device in devices:
        # A device that is new goes where the one before it is.
        at = home.get(device.name, at)
        if any(chunks[at + 1 :]):
            return []  # the author's order has changed
        chunks[at].append(device)
    return chunks if all(chunk and len(chunk) <= limit_of(chunk) for chunk in chunks) else []


def _anew(devices: Sequence[Device]) -> list[list[Device]]:
    chunks: list[list[Device]] = []
    for device in devices:
        # With the new device counted in: it may be the one that lowers the limit of the slice.
        if not chunks or len(chunks[-1]) >= limit_of([*chunks[-1], device]):
            chunks.append([])
        chunks[-1].append(device)
    return chunks


def limit_of(devices: Sequence[Device]) -> int:
    return ADVANCED_DEVICES if any(map(is_advanced, devices)) else DEVICES


def is_advanced(device: Device) -> bool:
    return bool(device.taints or device.consumes_counters or any(map(_is_list, device.attributes.values())))


def _is_list(attribute: DeviceAttribute) -> bool:
    return bool(attribute.ints or attribute.bools or attribute.strings or attribute.versions)
