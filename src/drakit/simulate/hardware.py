"""The devices of a node as they really are, and a driver for them.

In:  pools of devices; what the driver kit asks the driver.
Out: devices published, prepared and unprepared. Who uses which device is known here without asking any claim.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import msgspec

from drakit.api import Device, DeviceTaint
from drakit.driverkit import (
    AllocatedClaim,
    AllocatedDevice,
    DevicePool,
    Driver,
    HealthReport,
    HealthState,
    Prepared,
    PreparedClaim,
    PreparedDevice,
    Unprepared,
    each,
)

Place = tuple[str, str]
"""Pool and device."""


class Hardware:
    """What one driver has on one node. It outlives the driver's process; a reboot ends every use.

    `in_use` has, per device, the claims that it is prepared for. `sick` has the reason of each broken device.
    """

    def __init__(self, driver: str, pools: Sequence[DevicePool]) -> None:
        self.driver = driver
        self.pools = tuple(pools)
        self.in_use: dict[Place, dict[str, AllocatedDevice]] = {}
        self.sick: dict[str, str] = {}
        self.taints: dict[str, tuple[DeviceTaint, ...]] = {}
        self.effect = "NoExecute"
        self.listeners: dict[str, Callable[[], None]] = {}
        """Of each instance of the driver, its latest life."""

    def publish(self, *pools: DevicePool) -> None:
        """Replace pools of the same names, add others."""
        named = {each.name: each for each in (*self.pools, *pools)}
        self.pools = tuple(named.values())
        self._tell()

    def device_names(self) -> list[str]:
        return [device.name for pool in self.pools for device in pool.devices]

    def remove_devices(self, names: Sequence[str]) -> None:
        """Devices that are not there any more."""
        self.pools = tuple(
            msgspec.structs.replace(pool, devices=tuple(each for each in pool.devices if each.name not in names))
            for pool in self.pools
        )
        self._tell()

    def taint(self, device: str, *taints: DeviceTaint) -> None:
        """The taints of a device from now on; none to remove them."""
        self.taints[device] = taints
        self._tell()

    def break_device(self, device: str, reason: str = "broken") -> None:
        """The device is unhealthy, and is published with a taint; an empty reason mends it."""
        self.sick[device] = reason
        if not reason:
            del self.sick[device]
        self._tell()

    def published(self) -> list[DevicePool]:
        return [
            msgspec.structs.replace(pool, devices=tuple(map(self._with_taints, pool.devices))) for pool in self.pools
        ]

    def power_off(self) -> None:
        self.in_use.clear()

    def _with_taints(self, device: Device) -> Device:
        added = list(self.taints.get(device.name, ()))
        if device.name in self.sick:
            added.append(DeviceTaint(key=f"{self.driver}/unhealthy", value="true", effect=self.effect))
        return msgspec.structs.replace(device, taints=(*device.taints, *added)) if added else device

    def _tell(self) -> None:
        for listener in list(self.listeners.values()):
            listener()


class HardwareDriver(Driver):
    """The driver of one life of a process; the hardware stays."""

    def __init__(self, hardware: Hardware, instance: str = "") -> None:
        self.name = hardware.driver
        self._hardware = hardware
        self._moved = asyncio.Event()
        hardware.listeners[instance] = self._hardware_changed

    def devices(self) -> Sequence[DevicePool]:
        return self._hardware.published()

    async def prepare(self, claims: Sequence[AllocatedClaim]) -> Prepared:
        return await each(claims, self._prepare)

    def _prepare(self, claim: AllocatedClaim) -> list[PreparedDevice]:
        for device in claim.devices:
            self._hardware.in_use.setdefault((device.pool, device.device), {})[claim.uid] = device
        return [device.ready(env={"DEVICE": device.device}) for device in claim.devices]

    async def unprepare(self, claims: Sequence[PreparedClaim]) -> Unprepared:
        return await each(claims, self._unprepare)

    def _unprepare(self, claim: PreparedClaim) -> None:
        for users in self._hardware.in_use.values():
            users.pop(claim.uid, None)

    async def bind(self, claim: AllocatedClaim, device: AllocatedDevice) -> None:
        """Every device can be reached from its node at once."""

    async def health(self) -> AsyncIterator[Sequence[HealthReport]]:
        while True:
            self._moved.clear()
            yield self._reports()
            await self._moved.wait()

    def _reports(self) -> list[HealthReport]:
        sick = self._hardware.sick
        return [
            HealthReport(
                pool=pool.name or self.node_name,
                device=device.name,
                state=HealthState.UNHEALTHY if device.name in sick else HealthState.HEALTHY,
                message=sick.get(device.name, ""),
            )
            for pool in self._hardware.pools
            for device in pool.devices
        ]

    def _hardware_changed(self) -> None:
        self._moved.set()
        self.changed()
