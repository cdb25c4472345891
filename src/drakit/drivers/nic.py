"""Simulated network interfaces: bandwidth that claims share, binding conditions, network data.

`drakit driver run nic --set directory=DIR`

Each share gets an address of its own, kept in `DIR/addresses`. An interface that is named in `DIR/attach-failed` cannot
be attached: the pod is then scheduled again.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_network
from itertools import islice
from pathlib import Path

from drakit.api import NetworkDeviceData
from drakit.base.errors import UsageError
from drakit.driverkit import (
    AllocatedClaim,
    AllocatedDevice,
    BindingFailed,
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

_RATES = {"ingressBandwidth": "INGRESS_RATE", "egressBandwidth": "EGRESS_RATE"}
_ADDRESSES = 4096


class NicDriver(Driver):
    metadata = True

    def __init__(
        self, *, profile: str = "nic", directory: str = "/var/run/drakit-nic", subnet: str = "10.88.0.0/16"
    ) -> None:
        self._profile = load_profile(profile)
        self.name = self._profile.driver
        self._directory = Path(directory)
        self._leases = Leases(self._directory / "addresses")
        try:
            self._subnet = ip_network(subnet)
        except ValueError as error:
            raise UsageError(f"subnet: {error}") from None

    def devices(self) -> Sequence[DevicePool]:
        return self._profile.device_pools(self.node_name)

    async def bind(self, claim: AllocatedClaim, device: AllocatedDevice) -> None:
        """The interface is attached before the pod is bound."""
        failing = self._directory / "attach-failed"
        if failing.exists() and device.device in failing.read_text(encoding="utf-8").split():
            raise BindingFailed(f"claim {claim}: interface {device.device} cannot be attached", reason="AttachFailed")

    async def prepare(self, claims: Sequence[AllocatedClaim]) -> Prepared:
        return await each(claims, self._prepare)

    def _prepare(self, claim: AllocatedClaim) -> list[PreparedDevice]:
        return [self._ready(number, device, claim) for number, device in enumerate(claim.devices)]

    def _ready(self, number: int, device: AllocatedDevice, claim: AllocatedClaim) -> PreparedDevice:
        address = self._address(device, claim)
        network = NetworkDeviceData(
            interface_name=f"net{number + 1}",
            ips=(f"{address}/{self._subnet.prefixlen}",),
            hardware_address=hardware_address(address),
        )
        env = {f"NET_DEVICE_{number}": device.device, f"NET_DEVICE_{number}_ADDRESS": address}
        for capacity, name in _RATES.items():
            if capacity in device.consumed_capacity:
                env[f"NET_DEVICE_{number}_{name}"] = str(device.consumed_capacity[capacity])
        return device.ready(env=env, network_data=network)

    def _address(self, device: AllocatedDevice, claim: AllocatedClaim) -> str:
        # By claim first: `release` of the uid gives back the addresses of all its devices.
        owner = "/".join((claim.uid, device.request, device.device, device.share_id or ""))
        hosts = (str(each) for each in islice(self._subnet.hosts(), 1, _ADDRESSES))  # the first is the gateway's
        return self._leases.take(hosts, 1, owner)[0]

    async def unprepare(self, claims: Sequence[PreparedClaim]) -> Unprepared:
        return await each(claims, lambda claim: self._leases.release(claim.uid))


def hardware_address(address: str) -> str:
    """A local one (02:…) that is as unique as the address that it is made from."""
    return ":".join(["02", "00", *(f"{int(part):02x}" for part in address.split("."))])
