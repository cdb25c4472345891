"""Simulated GPUs: cards of several models, partitions on shared counters, device files, health, taints.

`drakit driver run gpu --profile a100-mig --set directory=DIR`

The directory stands for the hardware: `DIR/dev` has a file per card, and one per partition while it is in use. A line
`gpu-0 overheated` in `DIR/health` makes a card sick: its health stream says so, and it and its partitions get a taint,
until the line is gone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from drakit.api import Device, DeviceTaint
from drakit.base.clock import Clock, RealClock
from drakit.base.structs import Model
from drakit.driverkit import (
    PRIVILEGED,
    AllocatedClaim,
    AllocatedDevice,
    DeviceConfig,
    DevicePool,
    Driver,
    HealthReport,
    HealthState,
    Mount,
    Prepared,
    PreparedClaim,
    PreparedDevice,
    Unprepared,
    each,
)
from drakit.drivers.profiles import load_profile, positive


class TimeSlicing(Model):
    interval: Literal["Default", "Short", "Medium", "Long"] = "Default"


class Sharing(Model):
    strategy: Literal["TimeSlicing", "SpacePartitioning"] = "TimeSlicing"
    time_slicing_config: TimeSlicing = TimeSlicing()


class GpuConfig(DeviceConfig):
    """How containers of one claim share a card. The power limit is for whoever owns the class."""

    api_version = "gpu.resource.example.com/v1alpha1"
    sharing: Sharing = Sharing()
    power_limit_watts: Annotated[int | None, PRIVILEGED] = None


class GpuDriver(Driver):
    configs = (GpuConfig,)
    metadata = True

    def __init__(
        self,
        *,
        profile: str = "gpu",
        cards: str = "",
        directory: str = "/var/run/drakit-gpu",
        taint: str = "NoSchedule",
        poll: str = "1.0",
        clock: Clock | None = None,
    ) -> None:
        """`cards` is how many of the profile's cards there are, all without it. `poll` is in seconds.

        `taint` is the effect of sickness: `NoSchedule`, `NoExecute` or `None`.
        """
        self._profile = load_profile(profile)
        self.name = self._profile.driver
        self._count = positive(cards, "cards") if cards else None
        self._nodes = Path(directory) / "dev"
        self._control = Path(directory) / "health"
        self._effect = taint
        self._poll = float(poll)
        self._clock = clock or RealClock()
        self._sick: Mapping[str, str] = {}

    # What there is

    def devices(self) -> Sequence[DevicePool]:
        pools = self._profile.device_pools(self.node_name, cards=self._count)
        return [msgspec.structs.replace(pool, devices=tuple(map(self._tainted, pool.devices))) for pool in pools]

    def _tainted(self, device: Device) -> Device:
        reason = self._sickness(device.name)
        if not reason or self._effect == "None":
            return device
        taint = DeviceTaint(key=f"{self.name}/unhealthy", value="true", effect=self._effect)
        return msgspec.structs.replace(device, taints=(*device.taints, taint))

    def _sickness(self, device: str) -> str:
        """A partition is as sick as its card, whose name its own begins with."""
        # With the dash on both sides: `gpu-1` is no part of `gpu-10`.
        return next((why for card, why in self._sick.items() if f"{device}-".startswith(f"{card}-")), "")

    # Claims

    async def prepare(self, claims: Sequence[AllocatedClaim]) -> Prepared:
        return await each(claims, self._prepare)

    def _prepare(self, claim: AllocatedClaim) -> list[PreparedDevice]:
        return [self._ready(number, device, claim) for number, device in enumerate(claim.devices)]

    def _ready(self, number: int, device: AllocatedDevice, claim: AllocatedClaim) -> PreparedDevice:
        sharing = device.config(GpuConfig).sharing
        env = {
            f"GPU_DEVICE_{number}": device.device,
            f"GPU_DEVICE_{number}_SHARING_STRATEGY": sharing.strategy,
            f"GPU_DEVICE_{number}_TIMESLICE_INTERVAL": sharing.time_slicing_config.interval,
        }
        if device.admin_access:
            env["DRA_ADMIN_ACCESS"] = "true"
        node = self._node(device, claim)
        access = "ro" if device.admin_access else "rw"
        inside = Mount(host_path=str(node), container_path=f"/dev/{device.device}", options=(access, "bind"))
        return device.ready(env=env, mounts=[inside])

    def _node(self, device: AllocatedDevice, claim: AllocatedClaim) -> Path:
        """The device file. With adminAccess an existing file is left to its owner."""
        path = self._nodes / device.device
        self._nodes.mkdir(parents=True, exist_ok=True)
        if not (device.admin_access and path.exists()):
            path.write_text(claim.uid, encoding="utf-8")
        return path

    async def unprepare(self, claims: Sequence[PreparedClaim]) -> Unprepared:
        return await each(claims, self._unprepare)

    def _unprepare(self, claim: PreparedClaim) -> None:
        """Partitions go; cards stay, but nobody's. What a prepare that never ended has made is found by the claim."""
        # By content, not by the record of the claim: prepare may have stopped half-way.
        for path in self._nodes.glob("*"):
            if path.read_text(encoding="utf-8") != claim.uid:
                continue
            if path.name in self._cards():
                path.write_text("", encoding="utf-8")
            else:
                path.unlink()

    def _cards(self) -> set[str]:
        """Devices that are no part of another."""
        names = [device.name for pool in self._profile.device_pools(self.node_name) for device in pool.devices]
        return {name for name in names if not any(name.startswith(f"{other}-") for other in names)}

    # Health

    async def health(self) -> AsyncIterator[Sequence[HealthReport]]:
        told: Mapping[str, str] | None = None
        while True:
            self._sick = self._read_control()
            if self._sick != told:
                told = self._sick
                self.changed()
                yield self._reports()
            await self._clock.sleep(self._poll)

    def _read_control(self) -> dict[str, str]:
        try:
            lines = self._control.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return {}
        split = (line.partition(" ") for line in lines if line.strip())
        return {card: why or "unhealthy" for card, _, why in split}

    def _reports(self) -> list[HealthReport]:
        return [
            HealthReport(
                pool=pool.name,
                device=device.name,
                state=HealthState.UNHEALTHY if self._sickness(device.name) else HealthState.HEALTHY,
                message=self._sickness(device.name),
            )
            for pool in self._profile.device_pools(self.node_name)
            for device in pool.devices
        ]
