"""The devices that the driver says it has, as of its last word.

In:  `Driver.devices`.
Out: pools for the publisher; and whether an allocated device is still there.
"""

from __future__ import annotations

import logging

from drakit.api import Device
from drakit.base.errors import DrakitError, Unavailable
from drakit.driverkit.claims import AllocatedDevice
from drakit.driverkit.driver import Driver
from drakit.driverkit.pools import DevicePool, devices_by_key, read_pools

log = logging.getLogger("drakit.driverkit")


class PublishedDevices:
    """Invariant: `_pools` and `_devices` come from the same call of `Driver.devices`."""

    def __init__(self, driver: Driver, node_name: str) -> None:
        self._driver = driver
        self._node_name = node_name
        self._pools: tuple[DevicePool, ...] | None = None
        self._devices: dict[tuple[str, str], Device] = {}

    def refresh(self) -> tuple[DevicePool, ...]:
        """Ask the driver. Raise what it raises, or UsageError; the last good answer stays."""
        pools = read_pools(self._driver.devices(), self._node_name)
        # Both checked before either is set: after an error the last good answer stays.
        self._devices = devices_by_key(pools)
        self._pools = pools
        return pools

    def forget(self) -> None:
        """The driver has said that something changed: ask again before the next use."""
        self._pools = None

    def find(self, device: AllocatedDevice) -> Device | None:
        """The device as it is published. Raise Unavailable when it is gone.

        None for a device of a pool that somebody else publishes, which this driver may still prepare.
        """
        pools = self._pools if self._pools is not None else self._ask()
        found = self._devices.get((device.pool, device.device))
        ours = device.pool == self._node_name or any(pool.name == device.pool for pool in pools)
        if found is None and ours:
            raise Unavailable(f"device {device.pool}/{device.device} is not there any more")
        return found

    def publishes(self, pool: str) -> bool:
        """Whether the pool is one of the driver's. Raise Unavailable."""
        return any(each.name == pool for each in (self._pools if self._pools is not None else self._ask()))

    def _ask(self) -> tuple[DevicePool, ...]:
        try:
            return self.refresh()
        except Exception as error:
            if not isinstance(error, DrakitError):
                log.exception("devices() failed")
            raise Unavailable(f"the driver cannot say which devices it has: {error}") from error
