"""Bind a pod to a node, and evict one: writes to a pod that come as objects of their own.

In:  a Binding or an Eviction, posted below a pod.
Out: the pod with its node, or on its way out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drakit.apiserver.admission import UPDATE
from drakit.apiserver.bodies import read_body
from drakit.apiserver.deleting import delete_object
from drakit.apiserver.failures import ApiError, bad_request
from drakit.apiserver.keeping import Conflict, conflict
from drakit.apiserver.machinery import Call, Machinery
from drakit.apiserver.objects import Kept, Plain
from drakit.apiserver.options import WriteOptions, delete_options, parse_revision, write_options
from drakit.apiserver.tracking import manager_of, track
from drakit.apiserver.updating import TRIES
from drakit.base import fields, status
from drakit.base.fields import Path

SCHEDULED = "PodScheduled"


async def bind(machinery: Machinery, call: Call) -> None:
    """Handle a POST of a Binding."""
    options = write_options(call.request, "CreateOptions")
    binding = read_body(call.request)
    if not isinstance(binding, Mapping):
        raise bad_request("expected a Binding")
    _check_binding(call, binding)
    for attempt in range(TRIES):
        old = await machinery.keeper.get(call.kind, call.namespace, call.name)
        _check_pod(call, old, binding)
        try:
            await _assign(machinery, call, old, binding, options)
        except Conflict:
            if attempt == TRIES - 1:
                raise conflict(call.kind, call.name) from None
        else:
            return


def _check_binding(call: Call, binding: Mapping[str, Any]) -> None:
    target = binding.get("target") or {}
    found = []
    if target.get("kind", "") not in ("", "Node"):
        found.append(fields.not_supported(Path("target") / "kind", target["kind"], ("Node", "<empty>")))
    if not target.get("name"):
        found.append(fields.required(Path("target") / "name"))
    if found:
        raise ApiError(status.invalid("Binding", "", call.name, found))


def _check_pod(call: Call, pod: Kept, binding: Mapping[str, Any]) -> None:
    """A pod is bound once, as long as it is wanted, and only the pod that the scheduler has seen."""
    metadata = binding.get("metadata") or {}
    name, spec = call.name, pod.document["spec"]
    if metadata.get("uid", pod.uid) not in ("", pod.uid):
        why = f"Precondition failed: UID in precondition: {metadata['uid']}, UID in object meta: {pod.uid}"
        raise conflict(call.kind, name, why)
    if metadata.get("resourceVersion") and parse_revision(metadata["resourceVersion"]) != pod.revision:
        raise conflict(call.kind, name)
    if pod.metadata.get("deletionTimestamp"):
        raise _unbound(call, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise _unbound(call, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise _unbound(call, f"pod {name} has non-empty .spec.schedulingGates")


def _unbound(call: Call, why: str) -> ApiError:
    return ApiError(status.conflict("pods/binding", "", call.name, why))


async def _assign(
    machinery: Machinery, call: Call, old: Kept, binding: Mapping[str, Any], options: WriteOptions
) -> None:
    now = machinery.timestamp()
    new = _assigned(old.document, binding, now)
    track(call, old, new, manager_of(call.request, options), now)
    change = call.change(UPDATE, call.name, new=new, old=old, dry_run=options.dry_run, sent=binding)
    await machinery.admission.admit(change)
    await machinery.admission.validate(change)
    if not options.dry_run:
        await machinery.keeper.update(old, new)


def _assigned(pod: Plain, binding: Mapping[str, Any], now: str) -> Plain:
    given = binding.get("metadata") or {}
    metadata = dict(pod["metadata"])
    for name in ("labels", "annotations"):
        if given.get(name):
            metadata[name] = {**(metadata.get(name) or {}), **given[name]}
    scheduled = {"type": SCHEDULED, "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    others = [each for each in pod["status"].get("conditions") or () if each.get("type") != SCHEDULED]
    return {
        **pod,
        "metadata": metadata,
        "spec": {**pod["spec"], "nodeName": binding["target"]["name"]},
        "status": {**pod["status"], "conditions": [*others, scheduled]},
    }


async def evict(machinery: Machinery, call: Call) -> None:
    """Handle a POST of an Eviction: a deletion that asks first. There are no disruption budgets here to ask."""
    eviction = read_body(call.request)
    if not isinstance(eviction, Mapping):
        raise bad_request("expected an Eviction")
    name = (eviction.get("metadata") or {}).get("name", call.name)
    if name != call.name:
        raise bad_request("name in URL does not match name in Eviction object: " + f"{call.name} and {name}")
    options = delete_options(call.request, eviction.get("deleteOptions"))
    await delete_object(machinery, call, call.name, options)
