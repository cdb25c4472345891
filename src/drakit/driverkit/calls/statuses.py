"""Tell the server what drivers say about prepared devices: conditions, data, network data.

In:  uids of claims whose record has something to tell.
Out: `status.devices` of those claims. It is written behind the calls: a server that is away delays no container.
"""

from __future__ import annotations

import logging

from drakit.base.clock import Clock
from drakit.client import Client
from drakit.driverkit.conditions import apply_status, has_status, status_of
from drakit.driverkit.state.records import Preparation, Records, RecordState
from drakit.informers import Controller, Result

log = logging.getLogger("drakit.driverkit")


class DeviceStatusWriter:
    def __init__(self, client: Client, driver: str, records: Records, clock: Clock) -> None:
        self._client = client
        self._driver = driver
        self._records = records
        self._controller: Controller[str] = Controller(f"claim status of {driver}", self._reconcile, clock=clock)

    def note(self, record: Preparation) -> None:
        """Have the status of the claim written, if there is anything to say."""
        if record.state is RecordState.PREPARED and any(map(has_status, record.devices)):
            self._controller.queue.add(record.ref.uid)

    async def run(self) -> None:
        """Until cancelled. Begins with all prepared claims: the last process may not have written their status."""
        for uid in await self._records.uids():
            record = await self._records.get(uid)
            if record is not None:
                self.note(record)
        await self._controller.run()

    async def _reconcile(self, uid: str) -> Result:
        # Read again, not taken from the caller: the claim may have been updated or unprepared since.
        record = await self._records.get(uid)
        if record is not None and record.state is RecordState.PREPARED:
            entries = [status_of(self._driver, each) for each in record.devices if has_status(each)]
            await apply_status(self._client, self._driver, record.ref, entries)
        return Result.done()
