"""Prepare the claims of a pod before its containers start, and unprepare them after the last one has ended.

In:  pods; drivers to call.
Out: devices per claim, remembered on disk before the first call and after every change.

The calls of one pod are serial, one per driver with all of the pod's claims of that driver; the first failure ends the
round, and the next round calls all drivers again. A driver must be idempotent: two pods of one claim that start
together both call. An unprepare ends before the next prepare of the claim begins.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from drakit.api import Pod
from drakit.api.podclaims import claim_names
from drakit.base.clock import Clock
from drakit.base.errors import DrakitError, Retryable
from drakit.nodeagent.claims.admission import AdmittedClaim, ClaimAdmission, ClaimRefused
from drakit.nodeagent.claims.checkpoint import Checkpoint, CheckpointNotWritten
from drakit.nodeagent.claims.records import ClaimRecord, ClaimRecords
from drakit.nodeagent.claims.waits import SeenClaim
from drakit.nodeagent.metrics import AgentMetrics
from drakit.nodeagent.plugins.contract import ClaimIdentity, PluginCallFailed, PrepareAnswers

log = logging.getLogger("drakit.nodeagent")


class PreparationFailed(Retryable):
    """The claims of a pod are not ready; the text begins with the operation, as a kubelet says it.

    `claim` is the one whose change would help, where it is that.
    """

    def __init__(self, message: str, *, claim: SeenClaim | None = None) -> None:
        super().__init__(message)
        self.claim = claim


class DriverCalls(Protocol):
    async def prepare(self, name: str, claims: Sequence[ClaimIdentity]) -> PrepareAnswers: ...

    async def unprepare(self, name: str, claims: Sequence[ClaimIdentity]) -> Mapping[str, str]: ...


class ClaimPreparation:
    """Invariant: a claim is on disk, with the pod, before a driver hears of it, and until every driver let it go."""

    def __init__(
        self,
        records: ClaimRecords,
        checkpoint: Checkpoint,
        admission: ClaimAdmission,
        drivers: DriverCalls,
        metrics: AgentMetrics,
        clock: Clock,
    ) -> None:
        self.records = records
        self._checkpoint = checkpoint
        self._admission = admission
        self._drivers = drivers
        self._metrics = metrics
        self._clock = clock
        self._unsaved = False
        """The last write has failed: the disk is behind what is known."""

    async def prepare(self, pod: Pod) -> None:
        """Raise PreparationFailed. Idempotent; claims that are prepared already cause no call."""
        await self._measured("PrepareResources", self._prepare(pod), "prepare dynamic resources")

    async def unprepare(self, uid: str, pod: Pod | None) -> None:
        """Raise PreparationFailed. Idempotent. `pod`, where it is still known, gives the order of the claims."""
        await self._measured("UnprepareResources", self._unprepare(uid, pod), "unprepare dynamic resources")

    async def _measured(self, operation: str, work: Awaitable[None], words: str) -> None:
        start, failed = self._clock.monotonic(), True
        try:
            await work
            failed = False
        except DrakitError as error:
            raise PreparationFailed(f"{words}: {error}", claim=getattr(error, "claim", None)) from None
        finally:
            seconds = self._clock.monotonic() - start
            self._metrics.observe_operation(operation, failed=failed, seconds=seconds)

    # Prepare

    async def _prepare(self, pod: Pod) -> None:
        admitted = await self._admission.admit(pod)
        records = [await self._enter(pod, each) for each in admitted]
        waiting = [each for each in records if not each.prepared]
        # On disk before the first call: after a crash the agent knows whom to call unprepare for.
        if records:
            self._save()
        for driver, claims in by_driver(waiting).items():
            with calling("NodePrepareResources"):
                answers = await self._drivers.prepare(driver, [each.ref for each in claims])
            self._take(driver, claims, answers)
        for record in waiting:
            record.prepared, record.rebuilt = True, False
        if waiting:
            self._save()

    async def _enter(self, pod: Pod, admitted: AdmittedClaim) -> ClaimRecord:
        claim = admitted.claim
        name, namespace = claim.metadata.name, claim.metadata.namespace
        # An unprepare of the claim is under way. A prepare that overtakes it would be undone by it.
        while (found := self.records.find(namespace, name)) is not None and found.leaving is not None:
            await found.leaving.wait()
        if found is None:
            drivers = dict.fromkeys(admitted.drivers)
            found = ClaimRecord(claim.metadata.uid, name, namespace, drivers=dict.fromkeys(drivers))
            self.records.add(found)
        elif found.uid != claim.metadata.uid:
            raise ClaimRefused(
                f"old ResourceClaim with same name {name} and different UID {found.uid} still exists "
                "(previous pod force-deleted?!)"
            )
        found.pods[pod.metadata.uid] = None
        return found

    def _take(self, driver: str, claims: Sequence[ClaimRecord], answers: PrepareAnswers) -> None:
        """Record the claims that the driver prepared, even if others in the same answer failed."""
        for record in claims:
            answer = answers.get(record.uid)
            if answer is not None and not answer.error:
                record.drivers[driver] = list(answer.devices)
        self._check("NodePrepareResources", claims, {uid: answer.error for uid, answer in answers.items()})

    def _check(self, method: str, claims: Sequence[ClaimRecord], errors: Mapping[str, str]) -> None:
        known = {record.uid for record in claims}
        for record in claims:
            if error := errors.get(record.uid):
                raise CallRefused(f"{method} failed for ResourceClaim {record.name}: {error}")
        for uid in errors:
            if uid not in known:
                raise CallRefused(f"{method} returned result for unknown claim UID {uid}")
        if missing := len(known - errors.keys()):
            raise CallRefused(f"{method} skipped {missing} ResourceClaims")

    # Unprepare

    async def _unprepare(self, uid: str, pod: Pod | None) -> None:
        mine = self._ordered(uid, pod)
        # Drivers are called for the last pod of a claim only; others just leave the record.
        last = [record for record in mine if len(record.pods) == 1]
        for record in mine:
            if record not in last:
                del record.pods[uid]
        # A write that has failed before is made up for, or the next agent would let go what is gone already.
        if len(last) < len(mine) or self._unsaved:
            self._save()
        if last:
            await self._leave(last)

    async def _leave(self, records: Sequence[ClaimRecord]) -> None:
        left = asyncio.Event()
        for record in records:
            # Not prepared from here on, whatever comes of the calls: one of several drivers may have let go.
            record.leaving, record.prepared = left, False
        try:
            for driver, claims in by_driver(records).items():
                with calling("NodeUnprepareResources"):
                    errors = await self._drivers.unprepare(driver, [each.ref for each in claims])
                self._check("NodeUnprepareResources", claims, errors)
            for record in records:
                self.records.remove(record)
            self._save()
        finally:
            for record in records:
                record.leaving = None
            left.set()

    def _ordered(self, uid: str, pod: Pod | None) -> list[ClaimRecord]:
        """The pod's records, in the order in which its spec names them."""
        names = list(claim_names(pod).values()) if pod is not None else []
        place = {name: index for index, name in enumerate(names)}
        return sorted(self.records.of_pod(uid), key=lambda record: place.get(record.name, len(place)))

    def _save(self) -> None:
        self._unsaved = True
        try:
            self._checkpoint.save(self.records.all())
        except CheckpointNotWritten as error:
            raise CheckpointNotWritten(f"checkpoint ResourceClaim state: {error}") from error
        self._unsaved = False
        self.count()

    def count(self) -> None:
        self._metrics.set_claims_in_use(self.records.count_by_driver(), len(self.records.all()))


class CallRefused(Retryable):
    """A driver answered, and not with success."""


@contextmanager
def calling(method: str) -> Iterator[None]:
    """Prefix the error of a failed call with the name of the call."""
    try:
        yield
    except PluginCallFailed as error:
        raise CallRefused(f"{method}: {error}") from None


def by_driver(records: Iterable[ClaimRecord]) -> dict[str, list[ClaimRecord]]:
    grouped: dict[str, list[ClaimRecord]] = {}
    for record in records:
        for driver in record.drivers:
            grouped.setdefault(driver, []).append(record)
    return grouped
