"""The plugin DeviceOwnership: no device is given to two claims, whoever writes them.

In:  status updates of claims that allocate devices.
Out: a 409 with both names when a device is another claim's, or its capacity or the pool's counters do not suffice.

Kubernetes leaves this to its one scheduler. Two schedulers, or one with a mistake, may give a device twice. From the
check to the end of the write an allocation counts as held: of two that come at once, one is refused.
"""

from __future__ import annotations

from drakit.api.registry import Kind
from drakit.apiserver.admission.chain import UPDATE, AdmissionPlugin, ObjectChange
from drakit.apiserver.admission.plugins.deviceledger import Claim, DeviceLedger, Overdraft, holds_of
from drakit.apiserver.kinds.served import known_kind
from drakit.apiserver.storage.follower import Follower
from drakit.apiserver.storage.objectstore import ObjectStore, conflict

_GROUP = "resource.k8s.io"
_KINDS = (known_kind(f"{_GROUP}/v1", "ResourceSlice"), known_kind(f"{_GROUP}/v1", "ResourceClaim"))


class DeviceOwnership(AdmissionPlugin):
    name = "DeviceOwnership"
    default = False

    def __init__(self, objects: ObjectStore) -> None:
        self._ledger = DeviceLedger()
        self._follower = Follower(objects, _KINDS, self._ledger)

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
        claim = (change.namespace, change.name)
        found = self._ledger.overdraft(claim, wanted, new)
        if found is not None:
            raise conflict(change.kind, change.name, _why(found, claim))
        if not change.dry_run:
            self._ledger.begin(claim, wanted)
            change.after.append(lambda: self._ledger.end(claim, wanted))


def _why(found: Overdraft, claim: Claim) -> str:
    device = "/".join(found.device)
    mine, theirs = "/".join(claim), "/".join(found.owner)
    whose = "itself, in another result" if found.owner == claim else f"claim {theirs}"
    if found.what:
        return f"claim {mine} cannot have device {device}: {found.what} does not suffice beside {whose}"
    return f"claim {mine} cannot have device {device}: it is allocated to {whose}"
