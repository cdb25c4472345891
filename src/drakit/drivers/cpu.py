"""The CPUs of a node, given out by number: node-allocatable resources, and a cpuset for containers.

`drakit driver run cpu --set directory=DIR`

A device is a NUMA node. A claim takes some of its CPUs for itself alone; which ones is kept in `DIR/cpus`. The slices
map that amount to the node's `cpu`, so that a scheduler counts it together with what pods ask for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from drakit.api import Device
from drakit.base.errors import NotFound
from drakit.driverkit import (
    AllocatedClaim,
    AllocatedDevice,
    DevicePool,
    Driver,
    Prepared,
    PreparedClaim,
    PreparedDevice,
    Unprepared,
    each,
)
from drakit.drivers.leases import Leases
from drakit.drivers.profiles import load_profile

CPU = "dra.cpu/cpu"
NUMA_NODE = "dra.cpu/numaNodeID"
NUMBER = "dra.cpu/numCPUs"


class CpuDriver(Driver):
    metadata = True

    def __init__(self, *, profile: str = "cpu", directory: str = "/var/run/drakit-cpu") -> None:
        self._profile = load_profile(profile)
        self.name = self._profile.driver
        self._leases = Leases(Path(directory) / "cpus")

    def devices(self) -> Sequence[DevicePool]:
        return self._profile.device_pools(self.node_name)

    async def prepare(self, claims: Sequence[AllocatedClaim]) -> Prepared:
        return await each(claims, self._prepare)

    def _prepare(self, claim: AllocatedClaim) -> list[PreparedDevice]:
        return [self._ready(device, claim) for device in claim.devices]

    def _ready(self, device: AllocatedDevice, claim: AllocatedClaim) -> PreparedDevice:
        owner = "/".join((claim.uid, device.request, device.device, device.share_id or ""))
        numbers = self._leases.take(map(str, self._cpus(device.device)), self._wanted(device), owner)
        cpuset = as_ranges(map(int, numbers))
        variable = device.device.upper().replace("-", "_")
        return device.ready(env={f"DRA_CPUSET_{variable}": cpuset}, data={"cpuset": cpuset})

    def _wanted(self, device: AllocatedDevice) -> int:
        """All of it for a claim that has the device to itself."""
        if CPU in device.consumed_capacity:
            return device.consumed_capacity[CPU].value
        return len(self._cpus(device.device))

    def _cpus(self, name: str) -> range:
        """The kernel numbers the CPUs of a NUMA node one after the other."""
        device = self._find(name)
        node, number = device.attributes[NUMA_NODE].int_ or 0, device.attributes[NUMBER].int_ or 0
        return range(node * number, (node + 1) * number)

    def _find(self, name: str) -> Device:
        for pool in self._profile.device_pools(self.node_name):
            for device in pool.devices:
                if device.name == name:
                    return device
        raise NotFound(f"there is no device {name!r}")

    async def unprepare(self, claims: Sequence[PreparedClaim]) -> Unprepared:
        return await each(claims, lambda claim: self._leases.release(claim.uid))


def as_ranges(numbers: Iterable[int]) -> str:
    """As the kernel writes a set of CPUs: `0-3,8`."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][-1] == number - 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)
