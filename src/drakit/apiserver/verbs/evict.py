"""Evict a pod: delete it, unless that would take more of its kind than a disruption budget allows.

In:  an Eviction, posted to a subresource of the pod.
Out: the pod deleted, or marked as being deleted; 429 when its budget does not allow it now.

A budget's status says how many pods may go. Each eviction takes one off and notes the pod, in one write: two at the
same time cannot both have the last. The controller gives back what it sees has gone, or has not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from drakit.api.objects.plain import Plain, from_plain
from drakit.api.objects.policy import PodDisruptionBudget
from drakit.apiserver.failures import ApiError
from drakit.apiserver.kinds.served import known_kind
from drakit.apiserver.requests.bodies import read_as, read_body
from drakit.apiserver.requests.options import DeleteOptions, delete_options
from drakit.apiserver.storage.objects import StoredObject
from drakit.apiserver.storage.objectstore import prefix_of
from drakit.apiserver.verbs.bind import PodMetadata, check_name
from drakit.apiserver.verbs.context import ApiCall, ServerContext
from drakit.apiserver.verbs.delete import admit_deletion, check_preconditions, delete_object
from drakit.apiserver.verbs.write import repeat_on_conflict
from drakit.base import status
from drakit.base.labels import from_struct
from drakit.base.status import StatusCause, StatusDetails

_BUDGET = known_kind("policy/v1", "PodDisruptionBudget")
_MOST_NOTED = 2000
_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_UNBOUNDED = ("Succeeded", "Failed", "Pending")
_LATER = 10


class _Eviction(msgspec.Struct, frozen=True, rename="camel"):
    metadata: PodMetadata = PodMetadata()
    delete_options: dict[str, Any] | None = None


async def evict(context: ServerContext, call: ApiCall) -> None:
    """Handle a POST of an Eviction."""
    eviction = read_as(_Eviction, "Eviction", read_body(call.request))
    check_name(call, "Eviction", eviction.metadata)
    options = delete_options(call.request, eviction.delete_options)
    pod = await context.objects.get(call.kind, call.namespace, call.name)
    check_preconditions(call.kind, pod, options.preconditions)
    await admit_deletion(context, call, pod, dry_run=options.dry_run)
    bound = ""
    if not _is_over(pod):
        bound = await _ask_budget(context, pod, dry_run=options.dry_run)
    try:
        if not options.dry_run:
            options = await _mark(context, call, options, pod if bound else None)
        await delete_object(context, call, call.name, options, admitted=True)
    except ApiError as error:
        # The pod was let go because it was not ready, and has changed since.
        if bound and error.status.code == 409:
            raise _too_many(_still_processed(bound), retry_after=_LATER) from None
        raise


def _is_over(pod: StoredObject) -> bool:
    """Whether nothing is lost with the pod: it has ended, has not begun, or goes anyway."""
    phase = (pod.document.get("status") or {}).get("phase")
    return phase in _UNBOUNDED or bool(pod.metadata.get("deletionTimestamp"))


async def _ask_budget(context: ServerContext, pod: StoredObject, *, dry_run: bool) -> str:
    """Take one off the pod's budget, if it has one; the budget's name if the pod goes because it is not ready."""
    found = await _budgets(context, pod)
    if len(found) > 1:
        raise ApiError(status.failure(500, "", _SEVERAL))
    for stored in found:
        budget = _view(stored)
        if not _is_ready(pod) and _lets_unready_go(budget):
            return stored.name

        async def take_one(name: str = stored.name) -> None:
            current = await context.objects.find(_BUDGET, pod.namespace, name)
            if current is not None:
                new = _taken(current, pod.name, context.timestamp())
                if not dry_run:
                    await context.objects.update(current, new)

        await repeat_on_conflict(_BUDGET, stored.name, take_one)
    return ""


async def _budgets(context: ServerContext, pod: StoredObject) -> list[StoredObject]:
    page = await context.objects.store.list(prefix_of(_BUDGET, pod.namespace))
    stored = [context.objects.from_record(_BUDGET, record) for record in page.records]
    labels = pod.metadata.get("labels") or {}
    return [each for each in stored if _selects(_view(each), labels)]


def _selects(budget: PodDisruptionBudget, labels: Mapping[str, str]) -> bool:
    # An empty selector is every pod, none is no pod.
    return budget.spec.selector is not None and from_struct(budget.spec.selector).matches(labels)


def _view(stored: StoredObject) -> PodDisruptionBudget:
    return from_plain(PodDisruptionBudget, stored.document)


def _is_ready(pod: StoredObject) -> bool:
    conditions = (pod.document.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _lets_unready_go(budget: PodDisruptionBudget) -> bool:
    if budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
        return True
    now = budget.status
    return now.current_healthy >= now.desired_healthy > 0


def _taken(stored: StoredObject, pod: str, now: str) -> Plain:
    """The budget with one pod less to give."""
    budget, name = _view(stored), stored.name
    current = budget.status
    if current.observed_generation < budget.metadata.generation:
        raise _too_many(_still_processed(name), retry_after=_LATER)
    if current.disruptions_allowed < 0:
        raise _forbidden(name, "pdb disruptions allowed is negative")
    if len(current.disrupted_pods) > _MOST_NOTED:
        raise _forbidden(name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller")
    if current.disruptions_allowed == 0:
        raise _too_many(_why_none(budget))
    left = current.disruptions_allowed - 1
    before = stored.document.get("status") or {}
    after = {**before, "disruptionsAllowed": left, "disruptedPods": {**(before.get("disruptedPods") or {}), pod: now}}
    if not left:
        after["conditions"] = [_none_left(each, now) for each in before.get("conditions") or ()]
    return {**stored.document, "status": after}


def _none_left(condition: Plain, now: str) -> Plain:
    if condition.get("type") != "DisruptionAllowed":
        return condition
    changed = {"status": "False", "reason": "InsufficientPods", "lastTransitionTime": now}
    return {**condition, **changed} if condition.get("status") != "False" else condition


def _why_none(budget: PodDisruptionBudget) -> str:
    name, current = budget.metadata.name, budget.status
    said = next((each for each in current.conditions if each.type == "DisruptionAllowed"), None)
    if said is not None and said.status == "False" and said.message and said.reason == "SyncFailed":
        why = f"because it failed sync: {said.message}"
        return f"The disruption budget {name} does not allow evicting pods currently {why}"
    if current.current_healthy <= current.desired_healthy:
        needs, has = current.desired_healthy, current.current_healthy
        return f"The disruption budget {name} needs {needs} healthy pods and has {has} currently"
    if said is not None and said.status == "False" and said.message:
        return f"The disruption budget {name} does not allow evicting pods currently ({said.reason}): {said.message}"
    return f"The disruption budget {name} does not allow evicting pods currently"


def _still_processed(name: str) -> str:
    return f"The disruption budget {name} is still being processed by the server."


def _too_many(why: str, *, retry_after: int = 0) -> ApiError:
    cause = StatusCause(reason="DisruptionBudget", message=why)
    details = StatusDetails(causes=(cause,), retry_after_seconds=retry_after)
    headers = (("retry-after", str(retry_after)),) if retry_after else ()
    return ApiError(status.failure(429, "TooManyRequests", _REFUSED, details), headers=headers)


def _forbidden(name: str, why: str) -> ApiError:
    return ApiError(status.forbidden("poddisruptionbudget", "policy", name, why))


async def _mark(
    context: ServerContext, call: ApiCall, options: DeleteOptions, held: StoredObject | None
) -> DeleteOptions:
    """Tell in the pod's status that it is evicted. `held`: the pod must not have changed since."""

    async def mark_once() -> StoredObject:
        pod = await context.objects.get(call.kind, call.namespace, call.name)
        check_preconditions(call.kind, pod, options.preconditions)
        if held is not None:
            wanted = replace(options.preconditions, resource_version=str(held.revision))
            check_preconditions(call.kind, pod, wanted)
        marked = _marked(pod.document, context.timestamp())
        return pod if marked == pod.document else await context.objects.update(pod, marked)

    marked = await repeat_on_conflict(call.kind, call.name, mark_once)
    if held is None and options.preconditions.resource_version is None:
        return options
    return replace(options, preconditions=replace(options.preconditions, resource_version=str(marked.revision)))


def _marked(pod: Plain, now: str) -> Plain:
    before = pod.get("status") or {}
    conditions = list(before.get("conditions") or ())
    if any(each.get("type") == "DisruptionTarget" and each.get("status") == "True" for each in conditions):
        return pod
    others = [each for each in conditions if each.get("type") != "DisruptionTarget"]
    target = {
        "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting", "lastProbeTime": None, "lastTransitionTime": now,
    }  # fmt: skip
    return {**pod, "status": {**before, "conditions": [*others, target]}}
