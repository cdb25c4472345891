"""Prepare and unprepare claims, each once, whatever happens in between.

In:  claims, as often as a kubelet likes to ask, from as many calls at a time as it likes.
Out: an answer or an error per claim; one bad claim never fails another.

Steps of a claim, each of which may be the last one of the process:

    prepare:    read the record · fetch and check the claim · record Preparing · author · files · record Prepared
    unprepare:  read the record · record Unpreparing · author · remove files · remove the record

Only the record Preparing is flushed, and the CDI file: after a loss of power every record is of an earlier boot, and
says the same whether or not its last word reached the disk. A record that is torn is Damaged, see `state.records`.

A call that its caller gives up on goes on to its end; the next one for the claim finds what it did.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

import msgspec

from drakit.api import ResourceClaim
from drakit.base.clock import Clock
from drakit.base.errors import DrakitError, NotFound, Unavailable
from drakit.client import V
from drakit.driverkit.calls.answers import Answer, AuthorFailed, described, is_of, preparation_of
from drakit.driverkit.calls.artifacts import Artifacts
from drakit.driverkit.calls.inventory import PublishedDevices
from drakit.driverkit.calls.meter import AUTHOR, DISK, PREPARE, SERVER, UNPREPARE, WAITING, CallMeter, CallMetrics
from drakit.driverkit.calls.reader import ClaimReader, ClaimUnusable
from drakit.driverkit.calls.statuses import DeviceStatusWriter
from drakit.driverkit.claims import AllocatedClaim, ClaimRef, PreparedClaim, PreparedDevice, allocated_claim
from drakit.driverkit.driver import Driver
from drakit.driverkit.state.locks import ClaimLocks
from drakit.driverkit.state.records import Preparation, Records, RecordState

log = logging.getLogger("drakit.driverkit")

T = TypeVar("T")
_SOON = 2.0
"""Timeout in seconds for checking a prepared claim again: the answer is known, and the kubelet waits for it."""
_UID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")


class ClaimCalls:
    def __init__(
        self,
        driver: Driver,
        *,
        reader: ClaimReader,
        records: Records,
        artifacts: Artifacts,
        inventory: PublishedDevices,
        locks: ClaimLocks,
        boot_id: str,
        clock: Clock,
        metrics: CallMetrics,
        statuses: DeviceStatusWriter,
    ) -> None:
        self._driver = driver
        self._reader = reader
        self._records = records
        self._artifacts = artifacts
        self._inventory = inventory
        self._locks = locks
        self._boot_id = boot_id
        self._clock = clock
        self._metrics = metrics
        self._statuses = statuses
        self._running: set[asyncio.Task[Any]] = set()

    # What is asked

    async def prepare(self, refs: Sequence[ClaimRef]) -> dict[str, Answer]:
        """An entry per claim uid; never raises for what a claim or the driver's code does."""
        return await self._to_the_end(self._prepare({ref.uid: ref for ref in refs}))

    async def unprepare(self, refs: Sequence[ClaimRef]) -> dict[str, str]:
        """Per claim uid an error, or nothing."""
        return await self._to_the_end(self._unprepare({ref.uid: ref for ref in refs}))

    async def drain(self, grace: float) -> None:
        """Let what is under way finish, for so many seconds; then cancel it."""
        if not self._running:
            return
        ended = asyncio.gather(*self._running, return_exceptions=True)
        sleeping = asyncio.ensure_future(self._clock.sleep(grace))
        try:
            await asyncio.wait((ended, sleeping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            for task in self._running:
                task.cancel()
            await asyncio.gather(ended, sleeping, return_exceptions=True)

    async def _to_the_end(self, work: Coroutine[Any, Any, T]) -> T:
        # A kubelet that gives up on a call would cancel the author's code in the middle of a device. The work goes on,
        # and the kubelet's next call finds its result.
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    @asynccontextmanager
    async def _turn(self, method: str, uids: Iterable[str]) -> AsyncIterator[CallMeter]:
        """Hold the locks of these claims, and measure where the time goes."""
        meter = CallMeter(self._clock)
        async with AsyncExitStack() as stack:
            with meter.part(WAITING):
                await stack.enter_async_context(self._locks.held(uids))
            yield meter
        self._metrics.called(method, meter)

    # Prepare

    async def _prepare(self, refs: Mapping[str, ClaimRef]) -> dict[str, Answer]:
        async with self._turn(PREPARE, refs) as meter:
            return await self._prepare_all(refs, meter)

    async def _prepare_all(self, refs: Mapping[str, ClaimRef], meter: CallMeter) -> dict[str, Answer]:
        answers: dict[str, Answer] = {}
        begun: dict[str, AllocatedClaim] = {}
        for uid, ref in refs.items():
            try:
                found = await self._begin(ref, meter)
            except Exception as error:
                answers[uid] = self._failed(PREPARE, ref, error)
            else:
                if isinstance(found, Answer):
                    self._metrics.answered(PREPARE, "remembered")
                    answers[uid] = found
                else:
                    begun[uid] = found
        made = await self._ask_author(list(begun.values()), meter) if begun else {}
        for uid, claim in begun.items():
            answers[uid] = await self._finish(claim, made[uid], meter)
        return {uid: answers[uid] for uid in refs}

    async def _begin(self, ref: ClaimRef, meter: CallMeter) -> Answer | AllocatedClaim:
        """The record of a prepared claim; otherwise the claim, fetched and checked, for the author's `prepare`."""
        with meter.part(DISK):
            record = await self._remembered(ref)
        is_earlier = record is not None and record.boot_id != self._boot_id
        is_prepared = record is not None and record.state is RecordState.PREPARED
        # A record of an earlier boot is not trusted: devices and CDI files did not survive it.
        if record is not None and is_prepared and not is_earlier and await self._is_current(record, meter):
            with meter.part(DISK):
                await self._artifacts.restore(record)
            return self._answer(record)
        with meter.part(SERVER):
            claim = await self._reader.fetch(ref)
        allocated = allocated_claim(claim, self._driver.name, self._driver.configs)
        if not allocated.devices:
            return Answer()
        # A device that is not published any more fails the claim here, before anything is touched.
        for device in allocated.devices:
            self._inventory.find(device)
        is_bound = record is not None and record.state is RecordState.BOUND  # prepare goes on from there
        if record is not None and not (is_prepared and is_earlier) and not is_bound:
            await self._clean_up(msgspec.structs.replace(record, ref=ref), meter)
        with meter.part(DISK):
            # Flushed before the author's code runs: after a crash the kit must know that there is something to clean
            # up.
            await self._put(Preparation(ref=ref, state=RecordState.PREPARING, boot_id=self._boot_id), flush=True)
        return allocated

    async def _is_current(self, record: Preparation, meter: CallMeter) -> bool:
        """Whether the claim still has these devices. If the server does not answer in time, the record counts."""
        with meter.part(SERVER):
            claim = await self._soon(self._reader.find(record.ref))
        return claim is None or claim.status.allocation is None or is_of(record, claim, self._driver.name)

    async def _soon(self, asking: Coroutine[Any, Any, ResourceClaim | None]) -> ResourceClaim | None:
        """The answer of the API server; None when it takes longer than `_SOON` seconds."""
        asked, sleeping = asyncio.ensure_future(asking), asyncio.ensure_future(self._clock.sleep(_SOON))
        try:
            await asyncio.wait((asked, sleeping), return_when=asyncio.FIRST_COMPLETED)
            return asked.result() if asked.done() else None
        except Unavailable:
            return None
        finally:
            sleeping.cancel()
            asked.cancel()
            await asyncio.gather(asked, sleeping, return_exceptions=True)

    async def _ask_author(
        self, claims: Sequence[AllocatedClaim], meter: CallMeter
    ) -> dict[str, Sequence[PreparedDevice] | Exception]:
        try:
            with meter.part(AUTHOR):
                made = await self._driver.prepare(claims)
        except Exception as error:
            return dict.fromkeys((claim.uid for claim in claims), error)
        missing = AuthorFailed("the driver gave no answer for this claim")
        return {claim.uid: made.get(claim.uid, missing) for claim in claims}

    async def _finish(
        self, claim: AllocatedClaim, made: Sequence[PreparedDevice] | Exception, meter: CallMeter
    ) -> Answer:
        try:
            if isinstance(made, Exception):
                raise made
            record = preparation_of(claim, made, self._boot_id)
            if self._driver.metadata:
                record = described(record, claim, self._inventory)
            with meter.part(DISK):
                # Files first: a record that says Prepared promises that they are there.
                await self._artifacts.write(record)
                await self._put(record, flush=False)
        except Exception as error:
            await self._undo(claim, error, meter)
            return self._failed(PREPARE, claim.ref, error)
        self._metrics.answered(PREPARE, "done")
        self._metrics.in_use.inc()
        self._statuses.note(record)
        log.log(V[2], "prepared claim=%s uid=%s devices=%d", claim, claim.uid, len(record.devices))
        return self._answer(record)

    async def _undo(self, claim: AllocatedClaim, error: Exception, meter: CallMeter) -> None:
        """Clean up after a failed prepare. If that fails, the next call for the claim, or the sweep, tries again."""
        log.log(V[2], "cleaning up claim=%s uid=%s after: %s", claim, claim.uid, error)
        record = Preparation(ref=claim.ref, state=RecordState.PREPARING, boot_id=self._boot_id)
        try:
            await self._clean_up(record, meter)
        except Exception as second:
            log.warning("claim=%s uid=%s could not be cleaned up: %s", claim, claim.uid, second)

    # Unprepare

    async def _unprepare(self, refs: Mapping[str, ClaimRef]) -> dict[str, str]:
        async with self._turn(UNPREPARE, refs) as meter:
            return await self._unprepare_all(refs, meter)

    async def _unprepare_all(self, refs: Mapping[str, ClaimRef], meter: CallMeter) -> dict[str, str]:
        answers: dict[str, str] = {}
        records: dict[str, Preparation] = {}
        for uid, ref in refs.items():
            try:
                with meter.part(DISK):
                    record = await self._remembered(ref)
            except Exception as error:
                answers[uid] = self._failed(UNPREPARE, ref, error).error
            else:
                # Nothing is remembered, so nothing was prepared, or all of it was undone: a repeated call succeeds.
                if record is None:
                    answers[uid] = ""
                    self._metrics.answered(UNPREPARE, "remembered")
                else:
                    # A damaged record has lost namespace and name; the kubelet has told them.
                    records[uid] = msgspec.structs.replace(record, ref=ref)
        failures = await self._release(list(records.values()), meter) if records else {}
        for uid, record in records.items():
            failure = failures[uid]
            if failure is None:
                self._metrics.answered(UNPREPARE, "done")
                log.log(V[2], "unprepared claim=%s uid=%s", record.ref, uid)
                answers[uid] = ""
            else:
                answers[uid] = self._failed(UNPREPARE, record.ref, failure).error
        return {uid: answers[uid] for uid in refs}

    async def _release(self, records: Sequence[Preparation], meter: CallMeter) -> dict[str, Exception | None]:
        """Have the author undo claims, then forget them. Per uid what went wrong."""
        for record in records:
            with meter.part(DISK):
                await self._note_unpreparing(record)
        claims = [PreparedClaim(ref=record.ref, devices=record.devices) for record in records]
        try:
            with meter.part(AUTHOR):
                failed = await self._driver.unprepare(claims) or {}
        except Exception as error:
            failed = dict.fromkeys((claim.uid for claim in claims), error)
        outcome = {record.ref.uid: failed.get(record.ref.uid) for record in records}
        for record in records:
            if not isinstance(outcome[record.ref.uid], Exception):
                outcome[record.ref.uid] = await self._forget(record, meter)
        return outcome

    async def _note_unpreparing(self, record: Preparation) -> None:
        noted = msgspec.structs.replace(record, state=RecordState.UNPREPARING)
        try:
            await self._put(noted, flush=False)
        except Unavailable as error:
            # A full disk must not keep devices from being given back, which is what may make room.
            log.warning("claim=%s uid=%s: %s; going on without", record.ref, record.ref.uid, error)

    async def _forget(self, record: Preparation, meter: CallMeter) -> Exception | None:
        uid = record.ref.uid
        try:
            with meter.part(DISK):
                # The record goes last: until then a crash leaves a claim that unprepare is called for again.
                await self._artifacts.remove(uid)
                await self._records.remove(uid)
        except OSError as error:
            return Unavailable(f"cannot forget the claim: {error}")
        except DrakitError as error:
            return error
        if record.state is RecordState.PREPARED and record.boot_id == self._boot_id:
            self._metrics.in_use.dec()
        return None

    async def _clean_up(self, record: Preparation, meter: CallMeter) -> None:
        """Undo an unfinished preparation completely. Raise what went wrong."""
        failure = (await self._release([record], meter))[record.ref.uid]
        if failure is not None:
            raise failure

    # Binding, which comes before

    async def note_binding(self, ref: ClaimRef) -> None:
        """Remember that devices of the claim are about to be bound. Raise Unavailable."""
        async with self._locks.held([ref.uid]):
            if await self._remembered(ref) is None:
                await self._put(Preparation(ref=ref, state=RecordState.BOUND, boot_id=self._boot_id), flush=True)

    async def unbind(self, ref: ClaimRef) -> None:
        """Give back what was bound for a claim that was never prepared. Idempotent. Raise what went wrong."""
        async with self._turn(UNPREPARE, [ref.uid]) as meter:
            record = await self._remembered(ref)
            if record is not None and record.state is RecordState.BOUND:
                log.info("claim=%s uid=%s was bound and never prepared: unpreparing it", ref, ref.uid)
                await self._clean_up(record, meter)

    # Later

    async def update(self, uid: str, devices: Sequence[PreparedDevice]) -> None:
        """Update devices of a prepared claim: record, metadata files, claim status. Raise NotFound, Unavailable."""
        async with self._locks.held([uid]):
            record = await self._remembered(ClaimRef(namespace="", name="", uid=uid))
            if record is None or record.state is not RecordState.PREPARED:
                raise NotFound(f"claim uid={uid} is not prepared")
            told = {(each.request, *each.key): each for each in devices}
            unknown = told.keys() - {(each.request, *each.key) for each in record.devices}
            if unknown:
                raise NotFound(f"claim {record.ref} has no device {min(unknown, key=str)}")
            # Containers have their edits already.
            kept = tuple(
                msgspec.structs.replace(told.get((old.request, *old.key), old), edits=old.edits)
                for old in record.devices
            )
            changed = msgspec.structs.replace(record, devices=kept, generation=record.generation + 1)
            await self._put(changed, flush=False)
            await self._artifacts.write_metadata(changed)
        self._statuses.note(changed)

    # Both

    async def _remembered(self, ref: ClaimRef) -> Preparation | None:
        if not _UID.fullmatch(ref.uid):
            raise ClaimUnusable(f"claim {ref}: the uid {ref.uid!r} is none")
        try:
            return await self._records.get(ref.uid)
        except OSError as error:
            raise Unavailable(f"cannot read what is remembered of claim {ref}: {error}") from error

    async def _put(self, record: Preparation, *, flush: bool) -> None:
        try:
            await self._records.put(record, flush=flush)
        except OSError as error:
            raise Unavailable(f"cannot remember claim {record.ref}: {error}") from error

    def _answer(self, record: Preparation) -> Answer:
        return Answer(record, tuple(self._artifacts.cdi_ids(record)))

    def _failed(self, method: str, ref: ClaimRef, error: Exception) -> Answer:
        self._metrics.answered(method, "failed")
        if isinstance(error, DrakitError):
            log.warning("%s failed claim=%s uid=%s error=%s", method, ref, ref.uid, error)
        else:
            log.error("%s failed claim=%s uid=%s", method, ref, ref.uid, exc_info=error)
        return Answer(error=str(error) or type(error).__name__)
