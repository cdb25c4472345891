"""The plugin DeviceOwnership: no device is given to two claims, whoever writes them.

In:  status updates of claims that allocate devices.
Out: a 409 with both names when a device is another claim's, or its capacity or the pool's counters do not suffice.

Kubernetes leaves this to its one scheduler. Two schedulers, or one with a mistake, may give a device twice. From the
check to the end of the write an allocation counts as held: of two that come at once, one is refused.

Where several servers share a store, each has a ledger of its own, which may be behind. There an allocation is stored
only if nobody has allocated from the same pools since the revision that the ledger had: else it is judged again.
Allocations of one pool take turns in this process, as each would only overtake the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from weakref import WeakValueDictionary
from zlib import crc32

from drakit.api.registry import Kind
from drakit.apiserver.admission.chain import UPDATE, AdmissionPlugin, ObjectChange
from drakit.apiserver.admission.plugins.deviceledger import Claim, DeviceHold, DeviceLedger, Overdraft, holds_of
from drakit.apiserver.failures import ApiError
from drakit.apiserver.kinds.served import known_kind
from drakit.apiserver.storage.follower import Follower
from drakit.apiserver.storage.objectstore import ObjectStore, conflict
from drakit.store import Guard

_GROUP = "resource.k8s.io"
_CLAIM = known_kind(f"{_GROUP}/v1", "ResourceClaim")
_KINDS = (known_kind(f"{_GROUP}/v1", "ResourceSlice"), _CLAIM)
_GUARDS = 4096
"""Pools share this many guards, so that the store does not keep one for every pool that ever was."""


class DeviceOwnership(AdmissionPlugin):
    name = "DeviceOwnership"
    default = False

    def __init__(self, objects: ObjectStore) -> None:
        self._ledger = DeviceLedger()
        self._follower = Follower(objects, _KINDS, self._ledger)
        self._shared = objects.store.shared
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def start(self) -> None:
        await self._follower.start()

    async def stop(self) -> None:
        await self._follower.stop()

    def concerns(self, kind: Kind, operation: str, subresource: str) -> bool:
        return (kind.group, kind.kind, operation, subresource) == (_GROUP, "ResourceClaim", UPDATE, "status")

    async def validate(self, change: ObjectChange) -> None:
        wanted = holds_of(change.document)
        before = holds_of(change.old.document) if change.old is not None else ()
        # What the claim has already is not judged again: a write of conditions must go through whatever others did.
        new = [each for each in wanted if each not in before]
        if not new:
            return
        judged = _Allocation(self._ledger, self._follower, change, wanted, new)
        if self._shared and not change.dry_run:
            await self._take_turns(change, judged.guards)
            change.guard = judged
        if self._shared:
            await judged.judge_up_to_date()
        else:
            judged.judge()
        if not change.dry_run:
            self._ledger.begin(judged.claim, wanted)
            change.after.append(lambda: self._ledger.end(judged.claim, wanted))

    async def _take_turns(self, change: ObjectChange, guards: Sequence[str]) -> None:
        """Wait until no other allocation under the same guards is under way in this process."""
        for name in guards:  # sorted, so that no two wait for each other
            turn = self._turns.get(name)
            if turn is None:
                turn = self._turns[name] = asyncio.Lock()
            await turn.acquire()
            change.after.append(turn.release)


class _Allocation:
    """A claim's new allocation, from its judgement to the end of its write."""

    def __init__(
        self,
        ledger: DeviceLedger,
        follower: Follower,
        change: ObjectChange,
        wanted: Sequence[DeviceHold],
        new: Sequence[DeviceHold],
    ) -> None:
        self.claim = (change.namespace, change.name)
        self.guards = tuple(sorted({_guard_of(each) for each in new}))
        self._ledger = ledger
        self._follower = follower
        self._kind = change.kind
        self._wanted = wanted
        self._new = new
        self._seen = 0

    @property
    def terms(self) -> Guard:
        return Guard(self.guards, self._seen)

    def judge(self) -> None:
        """Raise 409 when it does not fit beside all that the ledger has."""
        # Before the judgement: whatever comes after it counts as not seen.
        self._seen = self._follower.progress(_CLAIM)
        found = self._ledger.overdraft(self.claim, self._wanted, self._new)
        if found is not None:
            raise conflict(self._kind, self.claim[1], _why(found, self.claim))

    async def judge_up_to_date(self) -> None:
        """Judge, and refuse only by what holds now: another server may have freed what this one counts as held.

        A device that nobody publishes is not judged, so that must be known to hold as well.
        """
        if not all(self._ledger.publishes(each.device) for each in self._new):
            await self._follower.catch_up()
        try:
            self.judge()
        except ApiError:
            await self.judge_again()

    async def judge_again(self) -> None:
        await self._follower.catch_up()
        self.judge()


def _guard_of(hold: DeviceHold) -> str:
    return f"devices/{crc32('/'.join(hold.device[:2]).encode()) % _GUARDS:03x}"


def _why(found: Overdraft, claim: Claim) -> str:
    device = "/".join(found.device)
    mine, theirs = "/".join(claim), "/".join(found.owner)
    whose = "itself, in another result" if found.owner == claim else f"claim {theirs}"
    if found.what:
        return f"claim {mine} cannot have device {device}: {found.what} does not suffice beside {whose}"
    return f"claim {mine} cannot have device {device}: it is allocated to {whose}"
