"""Writing a claim: the finalizer, then allocation and reservation.

In:  a claim as it was last seen, what it is to be allocated, for whom it is to be reserved.
Out: the claim as it is stored. Two writes, each once: the finalizer must be there before there is anything to protect.

A conflict is mostly harmless (somebody wrote a label): the claim is read again and all is decided anew. So it is after
an answer that was lost, as the write may have been done.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from drakit.api.objects.claims import AllocationResult, ResourceClaim, ResourceClaimConsumerReference
from drakit.api.requests import is_reserved_for
from drakit.api.text.times import format_time
from drakit.base.errors import DrakitError
from drakit.base.wellknown import CLAIM_FINALIZER
from drakit.client import (
    CLAIMS,
    PODS,
    STRATEGIC,
    Conflict,
    ConnectionFailed,
    Key,
    RequestTimeout,
    ServerTimeout,
)
from drakit.scheduler.dynamicresources.state.context import PluginContext
from drakit.scheduler.dynamicresources.state.errors import CannotBind
from drakit.scheduler.dynamicresources.state.needs import ClaimNeed

_TRIES = 5
_FIRST_PAUSE = 0.01


class _Undecided(CannotBind):
    """The claim was changed, or may have been: read it again and decide anew."""


async def store_claim(context: PluginContext, need: ClaimNeed, claim: ResourceClaim) -> ResourceClaim:
    """Allocate and reserve, whatever of it is still to be done. Raise CannotBind."""
    for attempt in range(_TRIES):
        try:
            return await _write(context, need, claim)
        except _Undecided as error:
            if attempt == _TRIES - 1:
                raise CannotBind(str(error)) from error
            await context.clock.sleep(_FIRST_PAUSE * attempt)
        claim = await _read_again(context, claim)
    raise AssertionError("unreachable")


async def _write(context: PluginContext, need: ClaimNeed, claim: ResourceClaim) -> ResourceClaim:
    where = f"{claim.metadata.namespace}/{claim.metadata.name}"
    if claim.metadata.deletion_timestamp is not None:
        raise CannotBind(f"claim {where} got deleted in the meantime")
    what = "add reservation"
    _check_consumer(context, claim.metadata.namespace, need.consumer)
    if need.allocation is not None and not _has(claim, need.allocation):
        if claim.status.allocation is not None:
            raise CannotBind(f"claim {where} got allocated elsewhere in the meantime")
        claim = await _told(f"add finalizer to claim {where}", lambda: _protect(context, claim))
        claim = replace(claim, status=replace(claim.status, allocation=_stamped(context, need.allocation)))
        what = "add allocation and reservation"
    elif claim.status.allocation is None:
        raise CannotBind(f"claim {where} got deallocated elsewhere in the meantime")
    elif is_reserved_for(claim, need.consumer.uid):
        return claim
    # Checked again after the write of the finalizer: the pod may have gone meanwhile.
    _check_consumer(context, claim.metadata.namespace, need.consumer)
    status = replace(claim.status, reserved_for=(*claim.status.reserved_for, need.consumer))
    wanted = replace(claim, status=status)
    return await _told(f"{what} to claim {where}", lambda: context.client.update_status(wanted))


def _check_consumer(context: PluginContext, namespace: str, consumer: ResourceClaimConsumerReference) -> None:
    """Raise CannotBind for a pod that was deleted or has ended: nobody would release what it gets."""
    if consumer.resource != "pods":
        return
    where = f'pod "{namespace}/{consumer.name}"'
    found = context.handle.informers.of(PODS).cache.get(Key(namespace, consumer.name))
    if found is None or found.view.metadata.uid != consumer.uid:
        raise CannotBind(f"{where} got deleted in the meantime")
    if found.view.is_terminal:
        raise CannotBind(f"{where} ended in the meantime")


async def _protect(context: PluginContext, claim: ResourceClaim) -> ResourceClaim:
    if CLAIM_FINALIZER in claim.metadata.finalizers:
        return claim
    metadata = replace(claim.metadata, finalizers=(*claim.metadata.finalizers, CLAIM_FINALIZER))
    return await context.client.update(replace(claim, metadata=metadata))


async def _told(what: str, write: Callable[[], Awaitable[ResourceClaim]]) -> ResourceClaim:
    try:
        return await write()
    except DrakitError as error:
        undecided = isinstance(error, Conflict | RequestTimeout | ServerTimeout)
        lost = isinstance(error, ConnectionFailed) and error.sent
        raise (_Undecided if undecided or lost else CannotBind)(f"{what}: {error}") from error


async def _read_again(context: PluginContext, claim: ResourceClaim) -> ResourceClaim:
    where = f"{claim.metadata.namespace}/{claim.metadata.name}"
    try:
        found = await context.client.get(CLAIMS, claim.metadata.name, namespace=claim.metadata.namespace)
    except DrakitError as error:
        raise CannotBind(f"get updated claim {where} after conflict: {error}") from error
    if found.metadata.uid != claim.metadata.uid:
        raise CannotBind(f"claim {where} got deleted in the meantime")
    return found


def _has(claim: ResourceClaim, allocation: AllocationResult) -> bool:
    """Whether this very allocation is stored: by a member of the pod's group, or by a write whose answer was lost."""
    stored = claim.status.allocation
    return stored is not None and replace(stored, allocation_timestamp=allocation.allocation_timestamp) == allocation


def _stamped(context: PluginContext, allocation: AllocationResult) -> AllocationResult:
    if not context.binding_conditions or allocation.allocation_timestamp is not None:
        return allocation
    return replace(allocation, allocation_timestamp=format_time(context.clock.now()))


async def drop_reservation(context: PluginContext, claim: ResourceClaim, uid: str) -> ResourceClaim:
    """Remove one consumer, whatever else has changed."""
    patch = {"status": {"reservedFor": [{"$patch": "delete", "uid": uid}]}}
    return await context.client.patch(claim, patch, kind=STRATEGIC, subresource="status", versioned=False)


async def deallocate(context: PluginContext, claim: ResourceClaim) -> ResourceClaim:
    """Take the allocation from a claim that nobody else uses. Raise Conflict when that has changed."""
    status = replace(claim.status, allocation=None, reserved_for=(), devices=())
    return await context.client.update_status(replace(claim, status=status))
