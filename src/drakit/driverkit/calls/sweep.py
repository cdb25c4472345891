"""Clean up what an earlier process left behind: at the start, and every ten minutes.

In:  records, files, and which claims exist according to the API server.
Out: CDI files as the records say; claims that are gone unprepared; files that belong to no claim removed.
"""

from __future__ import annotations

import logging

from drakit.base.clock import Clock
from drakit.base.errors import DrakitError
from drakit.client import V
from drakit.driverkit.calls.artifacts import Artifacts
from drakit.driverkit.calls.lifecycle import ClaimCalls
from drakit.driverkit.calls.meter import CallMetrics
from drakit.driverkit.calls.reader import ClaimReader
from drakit.driverkit.claims import ClaimRef
from drakit.driverkit.state.locks import ClaimLocks
from drakit.driverkit.state.records import Records, RecordState

log = logging.getLogger("drakit.driverkit")

INTERVAL = 600.0
"""Seconds between two sweeps."""


class Sweep:
    def __init__(
        self,
        calls: ClaimCalls,
        *,
        records: Records,
        artifacts: Artifacts,
        reader: ClaimReader,
        locks: ClaimLocks,
        boot_id: str,
        clock: Clock,
        metrics: CallMetrics,
    ) -> None:
        self._calls = calls
        self._records = records
        self._artifacts = artifacts
        self._reader = reader
        self._locks = locks
        self._boot_id = boot_id
        self._clock = clock
        self._metrics = metrics

    async def restore(self) -> None:
        """Restore CDI files of this boot's claims and remove all others, before the first call. Needs no server."""
        try:
            uids = await self._records.uids()
            orphans = set(await self._artifacts.uids()) - set(uids)
        except OSError as error:
            log.error("cannot look at what is remembered: %s", error)
            return
        prepared = 0
        for uid in uids:
            prepared += await self._restore(uid)
        self._metrics.in_use.set(prepared)
        for uid in sorted(orphans):
            log.info("removing files of claim uid=%s, of which nothing is remembered", uid)
            await self._remove_orphan(uid)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                await self.sweep()
            except (OSError, DrakitError) as error:
                log.warning("looking for claims that are gone: %s", error)
            await self._clock.sleep(INTERVAL)

    async def sweep(self) -> None:
        """Unprepare every claim that is gone or not allocated any more. When the API server cannot tell, keep it."""
        for uid in await self._records.uids():
            record = await self._records.get(uid)
            if record is None or record.state is RecordState.DAMAGED:
                continue  # of a damaged record nobody knows the name; the kubelet does, and will call
            if not await self._is_gone(record.ref):
                continue
            log.info("claim=%s uid=%s is not there any more, or not allocated: unpreparing it", record.ref, uid)
            await self._calls.unprepare([record.ref])

    async def _is_gone(self, ref: ClaimRef) -> bool:
        """A claim loses its allocation only when no pod uses it any more."""
        try:
            claim = await self._reader.find(ref)
            return claim is None or claim.status.allocation is None
        except DrakitError as error:
            log.log(V[2], "whether claim=%s exists is not known: %s", ref, error)
            return False

    async def _restore(self, uid: str) -> bool:
        """Whether the claim is prepared."""
        async with self._locks.held([uid]):
            try:
                record = await self._records.get(uid)
                if record is None or record.state is not RecordState.PREPARED or record.boot_id != self._boot_id:
                    return False
                if await self._artifacts.restore(record):
                    log.info("made the files of claim=%s uid=%s again", record.ref, uid)
            except (OSError, DrakitError) as error:
                log.error("claim uid=%s: %s", uid, error)
                return False
            return True

    async def _remove_orphan(self, uid: str) -> None:
        async with self._locks.held([uid]):
            try:
                # Under the lock, so asked again: a call may have prepared the claim since the files were listed.
                if await self._records.get(uid) is None:
                    await self._artifacts.remove(uid)
            except (OSError, DrakitError) as error:
                log.error("files of claim uid=%s: %s", uid, error)
