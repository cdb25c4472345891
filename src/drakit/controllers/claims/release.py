"""Give back what nobody uses: reservations, allocations, generated claims.

In:  a claim.
Out: its `reservedFor` without consumers that are gone; with the last one, the allocation and then the finalizer go.
     A claim that was made for a pod or group which is over is deleted.

The status and the finalizer are two writes. After a crash in between, the claim has a finalizer and no allocation, as
it also has while a scheduler is about to allocate it. So such a claim is left alone until it has not moved for a while.
"""

from __future__ import annotations

import logging

import msgspec

from drakit.api import ResourceClaim, is_allocated
from drakit.base.clock import Clock
from drakit.base.wellknown import CLAIM_FINALIZER
from drakit.client import Client, Key, V
from drakit.controllers.claims.consumers import Consumers
from drakit.informers import Informer, Result

log = logging.getLogger("drakit.controllers")
replace = msgspec.structs.replace

UNFINISHED_SECONDS = 30.0
"""Longer than any scheduler needs from its finalizer to its allocation."""


class ClaimReleaser:
    def __init__(self, client: Client, clock: Clock, claims: Informer[ResourceClaim], consumers: Consumers) -> None:
        self._client = client
        self._clock = clock
        self._claims = claims
        self._consumers = consumers
        self._unfinished: dict[Key, tuple[str, float]] = {}  # version, since when

    def leave_alone(self, key: Key, claim: ResourceClaim) -> float | None:
        """Seconds for which the claim needs nothing, judged by caches alone. None means: until something changes."""
        if claim.status.reserved_for:
            settled = all(self._consumers.surely_uses(claim, each) for each in claim.status.reserved_for)
        else:
            settled = claim.metadata.deletion_timestamp is None and self._consumers.owner_surely_needs(claim)
            if settled and CLAIM_FINALIZER in claim.metadata.finalizers and not is_allocated(claim):
                return self._left_unfinished(key, claim)
        self._unfinished.pop(key, None)
        return None if settled else 0.0

    async def reconcile(self, key: Key) -> Result:
        claim = self._claims.cache.get(key)
        if claim is None:
            self._unfinished.pop(key, None)
            return Result.done()
        # Caches may lag: `still_uses` asks the server before it says that a consumer is gone.
        users = [each for each in claim.status.reserved_for if await self._consumers.still_uses(claim, each)]
        if len(users) < len(claim.status.reserved_for):
            log.log(V[3], "claim %s: %d of its consumers are gone", key, len(claim.status.reserved_for) - len(users))
            claim = await self._set_users(claim, tuple(users))
        if users:
            return Result.done()
        return await self._unused(key, claim)

    async def _set_users(self, claim: ResourceClaim, users: tuple[object, ...]) -> ResourceClaim:
        status = replace(claim.status, reserved_for=users)
        if not users:
            status = replace(status, allocation=None, devices=())
        # The status first: while the finalizer is there, a claim whose devices are still allocated cannot vanish.
        written = await self._client.update_status(replace(claim, status=status))
        return written if users else await self._unprotect(written)

    async def _unused(self, key: Key, claim: ResourceClaim) -> Result:
        deleted = claim.metadata.deletion_timestamp is not None
        if deleted and CLAIM_FINALIZER in claim.metadata.finalizers:
            if is_allocated(claim):
                bare = replace(claim.status, allocation=None, devices=())
                claim = await self._client.update_status(replace(claim, status=bare))
            await self._unprotect(claim)
        elif not deleted and not await self._consumers.owner_needs(claim):
            log.log(V[3], "claim %s: whom it was made for needs it no more", key)
            await self._client.delete_object(claim)
        elif not deleted and not is_allocated(claim) and CLAIM_FINALIZER in claim.metadata.finalizers:
            return await self._finish(key, claim)
        self._unfinished.pop(key, None)
        return Result.done()

    async def _finish(self, key: Key, claim: ResourceClaim) -> Result:
        left = self._left_unfinished(key, claim)
        if left > 0:
            return Result.after(left)
        del self._unfinished[key]
        await self._unprotect(claim)
        return Result.done()

    def _left_unfinished(self, key: Key, claim: ResourceClaim) -> float:
        """Seconds until a claim with a finalizer and no allocation counts as left over by a crash."""
        now, version = self._clock.monotonic(), claim.metadata.resource_version
        seen, since = self._unfinished.get(key, ("", now))
        if seen != version:
            since = now
            self._unfinished[key] = (version, now)
        return max(UNFINISHED_SECONDS - (now - since), 0.0)

    async def _unprotect(self, claim: ResourceClaim) -> ResourceClaim:
        kept = tuple(name for name in claim.metadata.finalizers if name != CLAIM_FINALIZER)
        if len(kept) == len(claim.metadata.finalizers):
            return claim
        return await self._client.update(replace(claim, metadata=replace(claim.metadata, finalizers=kept)))
