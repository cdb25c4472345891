"""PreBind: store what was reserved, and wait until it is ready. Unreserve: undo it.

In:  the pod's needs after `reserve`.
Out: every claim allocated and reserved for the pod or its group, none of its devices anybody else's, all of its binding
     conditions met; or why not, with the claims as they were left in the needs.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta

from drakit.api.objects.claims import ResourceClaim
from drakit.api.objects.pods import Pod
from drakit.api.requests import is_reserved_for
from drakit.base.errors import DrakitError
from drakit.client import V
from drakit.scheduler.dynamicresources.points.reservation import release
from drakit.scheduler.dynamicresources.points.writes import drop_reservation, store_claim
from drakit.scheduler.dynamicresources.state.bindingconditions import (
    DeviceBindingFailed,
    DeviceBindingTimedOut,
    deadline,
    has_conditions,
    is_ready,
    timed_out,
)
from drakit.scheduler.dynamicresources.state.context import PluginContext
from drakit.scheduler.dynamicresources.state.errors import CannotBind
from drakit.scheduler.dynamicresources.state.needs import ClaimNeed, PodNeeds

log = logging.getLogger("drakit.scheduler")


async def bind_claim(context: PluginContext, need: ClaimNeed) -> None:
    """Store one claim, and make sure that its devices are its own. Raise CannotBind."""
    known = context.claims.newest(need.claim) or need.claim
    need.claim = await store_claim(context, need, known)
    context.claims.assume(need.claim)
    # Another scheduler may have given the same devices away. The informer shows whose write came first.
    overlap = await need.flight.landed() if need.flight is not None else None
    where = f"{need.claim.metadata.namespace}/{need.claim.metadata.name}"
    if overlap is not None:
        raise CannotBind(f"claim {where}: device {overlap} got allocated elsewhere in the meantime")
    # The wait may have been long: the claim can be gone, or deallocated, by now.
    stored = context.claims.newest(need.claim)
    if stored is None:
        raise CannotBind(f"claim {where} got deleted in the meantime")
    if stored.status.allocation is None:
        raise CannotBind(f"claim {where} got deallocated elsewhere in the meantime")
    need.flight = None


def waits(context: PluginContext, state: PodNeeds) -> bool:
    """Whether some device of the pod has conditions to meet."""
    if not context.binding_conditions:
        return False
    for need in state.needs:
        allocation = need.claim.status.allocation or need.allocation
        if allocation is not None and any(each.binding_conditions for each in allocation.devices.results):
            return True
    return False


async def wait_ready(context: PluginContext, state: PodNeeds, pod: Pod, node: str) -> None:
    """Wait for the conditions of all devices. Raise DeviceBindingFailed, DeviceBindingTimedOut, CannotBind."""
    began, failure = context.clock.monotonic(), None
    try:
        await _wait_ready(context, state, node)
    except DrakitError as error:
        failure = error
    seconds = context.clock.monotonic() - began
    context.metrics.waited(pod.spec.scheduler_name, [need.claim for need in state.needs], seconds, _status(failure))
    if failure is not None:
        raise failure


def _status(failure: DrakitError | None) -> str:
    """The value of the metrics label `status`: how the wait ended."""
    match failure:
        case None:
            return "success"
        case DeviceBindingFailed():
            return "failure"
        case DeviceBindingTimedOut():
            return "timeout"
        case _:
            return "error"


def check_node(context: PluginContext, node: str) -> None:
    """Raise CannotBind: nothing will ever be ready on a node that is gone."""
    if context.departures.is_gone(node):
        raise CannotBind(f'node "{node}" got deleted in the meantime')


async def _wait_ready(context: PluginContext, state: PodNeeds, node: str) -> None:
    waiting = [need for need in state.needs if has_conditions(need.claim)]
    latest = context.clock.now() + timedelta(seconds=context.binding_timeout)
    changed = asyncio.Event()
    ends = [
        context.claims.listen([need.claim for need in waiting], lambda _: changed.set()),
        context.departures.listen(node, changed.set),
    ]
    try:
        while (pending := _pending(context, waiting)) is not None:
            until = min(latest, deadline(pending, context.binding_timeout) or latest)
            if context.clock.now() >= until:
                raise timed_out(pending)
            changed.clear()
            await _wait(context, changed, until)
            check_node(context, node)
    finally:
        for end in ends:
            end()


def _pending(context: PluginContext, needs: list[ClaimNeed]) -> ResourceClaim | None:
    """A claim that is not ready yet."""
    pending: ResourceClaim | None = None
    for need in needs:
        where = f"{need.claim.metadata.namespace}/{need.claim.metadata.name}"
        found = context.claims.newest(need.claim)
        if found is None:
            raise CannotBind(f'could not find ResourceClaim "{where}"')
        if found.status.allocation is None:
            raise CannotBind(f"claim {where} got deallocated elsewhere in the meantime")
        need.claim = found
        if not is_ready(found):
            pending = pending or found
    return pending


async def _wait(context: PluginContext, changed: asyncio.Event, until: datetime) -> None:
    seconds = (until - context.clock.now()).total_seconds()
    tasks = [asyncio.ensure_future(changed.wait()), asyncio.ensure_future(context.clock.sleep(seconds))]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def unreserve(context: PluginContext, state: PodNeeds, pod: Pod) -> None:
    """Give devices back at once; then drop the reservations that were written. Never fails."""
    release(context, state, pod)
    for need in state.needs:
        claim = need.claim
        if need.special or claim.status.allocation is None or not is_reserved_for(claim, pod.metadata.uid):
            continue
        try:
            need.claim = await drop_reservation(context, claim, pod.metadata.uid)
            context.claims.assume(need.claim)
        except DrakitError as error:
            where = f"{claim.metadata.namespace}/{claim.metadata.name}"
            log.log(V[1], "unreserve of claim %s for pod %s: %s", where, pod.metadata.name, error)
