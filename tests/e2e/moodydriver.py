"""A driver whose calls tests hold up or let fail, by files in its directory.

`hold-prepare` holds prepare up until the file goes, `fail-prepare` lets it fail with the file's text; so for unprepare.
`called-prepare` is there as soon as a call has come.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from drakit.api import Device
from drakit.driverkit import AllocatedClaim, Driver, Prepared, PreparedClaim, each

NAME = "moody.example.com"


class MoodyDriver(Driver):
    name = NAME

    def __init__(self, *, directory: str) -> None:
        self._directory = Path(directory)

    def devices(self) -> list[Device]:
        return [Device(name=f"mood-{number}") for number in range(8)]

    async def prepare(self, claims: Sequence[AllocatedClaim]) -> Prepared:
        await self._feel("prepare")
        return await each(claims, lambda claim: [one.ready(env={"MOOD": one.device}) for one in claim.devices])

    async def unprepare(self, claims: Sequence[PreparedClaim]) -> None:
        del claims
        await self._feel("unprepare")

    async def _feel(self, call: str) -> None:
        (self._directory / f"called-{call}").touch()
        while (self._directory / f"hold-{call}").exists():  # noqa: ASYNC110 - a file of another process
            await asyncio.sleep(0.02)
        fails = self._directory / f"fail-{call}"
        if fails.exists():
            raise RuntimeError(fails.read_text())
