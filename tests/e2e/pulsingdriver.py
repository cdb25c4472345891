"""A driver that tells of its devices' health twice a second; each report holds for two seconds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from drakit.api import Device
from drakit.driverkit import AllocatedClaim, Driver, HealthReport, HealthState, Prepared, PreparedClaim, each

NAME = "pulsing.example.com"


class PulsingDriver(Driver):
    name = NAME

    def __init__(self, *, directory: str) -> None:
        del directory

    def devices(self) -> list[Device]:
        return [Device(name="heart-0")]

    async def prepare(self, claims: Sequence[AllocatedClaim]) -> Prepared:
        return await each(claims, lambda claim: [one.ready(env={"HEART": one.device}) for one in claim.devices])

    async def unprepare(self, claims: Sequence[PreparedClaim]) -> None:
        """It keeps nothing."""

    async def health(self) -> AsyncIterator[Sequence[HealthReport]]:
        while True:
            state = HealthState.HEALTHY
            yield [HealthReport(pool=self.node_name, device="heart-0", state=state, message="beats", timeout=2)]
            await asyncio.sleep(0.5)
