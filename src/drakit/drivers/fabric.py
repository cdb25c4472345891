"""Accelerators on a fabric: a pool that any node of a zone can reach, attached to a node when a pod needs one.

`drakit driver run fabric --set directory=DIR`

The directory stands for the switch and is shared by all nodes: `DIR/ports` says which claim each accelerator is
attached for; the claim says which node that is. A port that is named in `DIR/broken` cannot be attached: the pod is
scheduled again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

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
from drakit.drivers.profiles import load_profile


class FabricDriver(Driver):
    metadata = True

    def __init__(self, *, profile: str = "fabric", directory: str = "/var/run/drakit-fabric") -> None:
        self._profile = load_profile(profile)
        self.name = self._profile.driver
        self._broken = Path(directory) / "broken"
        self._ports = Path(directory) / "ports"

    def devices(self) -> Sequence[DevicePool]:
        return self._profile.device_pools(self.node_name)

    async def bind(self, claim: AllocatedClaim, device: AllocatedDevice) -> None:
        """The switch attaches the accelerator to the claim's node. The pod is bound when it has."""
        if device.device in self._broken_ports():
            raise BindingFailed(f"the switch cannot attach {device.device}", reason="PortBroken")
        self._attach(claim, device)

    def _broken_ports(self) -> list[str]:
        return self._broken.read_text(encoding="utf-8").split() if self._broken.exists() else []

    def _attach(self, claim: AllocatedClaim, device: AllocatedDevice) -> None:
        """The newest claim counts: a device is given to one at a time, and one that was never prepared may be gone."""
        self._ports.mkdir(parents=True, exist_ok=True)
        temporary = self._ports / f".{device.device}.{claim.uid}"
        temporary.write_text(claim.uid, encoding="utf-8")
        # A rename replaces the file as a whole: other nodes read it at any time.
        temporary.rename(self._ports / device.device)

    async def prepare(self, claims: Sequence[AllocatedClaim]) -> Prepared:
        return await each(claims, self._prepare)

    def _prepare(self, claim: AllocatedClaim) -> list[PreparedDevice]:
        return [self._ready(number, device, claim) for number, device in enumerate(claim.devices)]

    def _ready(self, number: int, device: AllocatedDevice, claim: AllocatedClaim) -> PreparedDevice:
        # With binding conditions off nobody has called `bind`.
        self._attach(claim, device)
        return device.ready(env={f"FABRIC_ACCELERATOR_{number}": f"{device.pool}/{device.device}"})

    async def unprepare(self, claims: Sequence[PreparedClaim]) -> Unprepared:
        return await each(claims, self._detach)

    def _detach(self, claim: PreparedClaim) -> None:
        for port in self._ports.glob("[!.]*"):
            # Another claim may have the port by now; it stays attached for that one.
            if port.read_text(encoding="utf-8") == claim.uid:
                port.unlink(missing_ok=True)
