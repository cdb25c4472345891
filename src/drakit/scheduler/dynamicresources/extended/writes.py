"""Write the special claim of a pod, and take it back.

In:  a special claim in memory, and a node that was chosen for its pod.
Out: claim, finalizer, claim status and pod status, in this order (the second and third are those of any claim, written
     where claims are bound); taken back in the reverse order, so that at no time something refers to what is gone.

A claim that may have been created by a request whose answer never came is looked for before another one is made: there
is at most one per pod.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress

from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from drakit.api import Pod, ResourceClaim, ResourceClaimStatus, to_plain
from drakit.api.objects.pods import ContainerExtendedResourceRequest, PodExtendedResourceClaimStatus
from drakit.base.errors import DrakitError, Unavailable
from drakit.base.wellknown import CLAIM_FINALIZER
from drakit.client import CLAIMS, Client, Key, NotFound, RequestTimeout, ServerTimeout, key_of
from drakit.scheduler.dynamicresources.extended.special import find_special, to_create
from drakit.scheduler.metrics import ClaimMetrics

log = logging.getLogger("drakit.scheduler")

FIELD = "extendedResourceClaimStatus"
UndoStep = Callable[[], Awaitable[None]]
ClaimChange = Callable[[ResourceClaim], ResourceClaim | None]


class Writing:
    def __init__(self, client: Client, registry: CollectorRegistry) -> None:
        self._client = client
        self._in_doubt: set[str] = set()
        self._metrics = ClaimMetrics(registry)

    def forget(self, pod: str) -> None:
        """The pod of that uid is gone."""
        self._in_doubt.discard(pod)

    async def create(self, pod: Pod, claim: ResourceClaim) -> ResourceClaim:
        """The claim as the server made it. Raise DrakitError."""
        await self._settle_doubt(pod)
        try:
            made = await self._client.create(to_create(claim))
        except DrakitError as error:
            self._metrics.created(ok=False)
            if isinstance(error, Unavailable | RequestTimeout | ServerTimeout):
                self._in_doubt.add(pod.metadata.uid)
            raise
        self._metrics.created(ok=True)
        return made

    async def record(
        self, pod: Pod, claim: ResourceClaim, mappings: tuple[ContainerExtendedResourceRequest, ...]
    ) -> None:
        """Write the special claim and its request mappings to the pod's status. Raise DrakitError."""
        status = PodExtendedResourceClaimStatus(request_mappings=mappings, resource_claim_name=claim.metadata.name)
        if pod.status.extended_resource_claim_status != status:
            await self._client.patch_status(pod, {FIELD: to_plain(status)})

    async def clear(self, pod: Pod) -> None:
        """Remove the special claim from the pod's status, if the pod still exists. Raise DrakitError."""
        with suppress(NotFound):
            await self._client.patch_status(pod, {FIELD: None})

    async def take_back(self, pod: Pod, claim: ResourceClaim | None, *, recorded: bool) -> bool:
        """Undo whatever was written, `recorded` when the pod's status may tell of it. Never fails: it logs and goes on.

        A claim that could not be deallocated stays, for the next attempt: one that has devices must not vanish. Tell
        whether the claim is gone, as far as can be told.
        """
        name, gone = Key(pod.metadata.namespace, pod.metadata.name), True
        try:
            await self._settle_doubt(pod)
        except DrakitError as error:
            log.warning("pod %s: failed to look for its claim of extended resources: %s", name, error)
        for what, step, needed in self._steps(pod, claim, recorded=recorded):
            try:
                await step()
            except DrakitError as error:
                log.warning("pod %s: failed to %s: %s", name, what, error)
                gone = False
                if needed:
                    break
        return gone

    async def remove(self, pod: Pod, claim: ResourceClaim, *, recorded: bool) -> None:
        """The same, but raise DrakitError when something fails."""
        for _, step, _ in self._steps(pod, claim, recorded=recorded):
            await step()

    async def _settle_doubt(self, pod: Pod) -> None:
        """Remove a claim that a request without an answer may have created."""
        if pod.metadata.uid in self._in_doubt:
            found = find_special(await self._client.list(CLAIMS, namespace=pod.metadata.namespace), pod)
            if found is not None:
                await self.remove(pod, found, recorded=False)
            self._in_doubt.discard(pod.metadata.uid)

    def _steps(self, pod: Pod, claim: ResourceClaim | None, *, recorded: bool) -> Iterator[tuple[str, UndoStep, bool]]:
        """What to do, how, and whether the rest may only be done after it."""
        # The pod first: at no time may its status name a claim that is gone.
        if recorded:
            yield f"clear status.{FIELD}", lambda: self.clear(pod), False
        if claim is not None:
            name = claim.metadata.name
            yield f"deallocate claim {name}", lambda: self._change(claim, _deallocated, "status"), True
            yield f"remove the finalizer of claim {name}", lambda: self._change(claim, _unprotected, ""), False
            yield f"delete claim {name}", lambda: self._client.delete_object(claim), False

    async def _change(self, claim: ResourceClaim, change: ClaimChange, subresource: str) -> None:
        """Change that claim as it is now: a write whose answer never came may have been done."""
        uid, where = claim.metadata.uid, key_of(claim)
        with suppress(NotFound):
            await self._client.mutate(
                CLAIMS,
                where.name,
                lambda found: change(found) if found.metadata.uid == uid else None,
                namespace=where.namespace,
                subresource=subresource,
            )


def _deallocated(claim: ResourceClaim) -> ResourceClaim | None:
    return replace(claim, status=ResourceClaimStatus()) if claim.status != ResourceClaimStatus() else None


def _unprotected(claim: ResourceClaim) -> ResourceClaim | None:
    kept = tuple(name for name in claim.metadata.finalizers if name != CLAIM_FINALIZER)
    if len(kept) == len(claim.metadata.finalizers):
        return None
    return replace(claim, metadata=replace(claim.metadata, finalizers=kept))
