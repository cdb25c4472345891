"""Bind a pod to a node.

In:  a Binding, posted to a subresource of the pod.
Out: the pod with its node.
"""

from __future__ import annotations

from typing import Any

import msgspec

from drakit.api.objects.plain import Plain
from drakit.apiserver.admission.chain import UPDATE
from drakit.apiserver.failures import ApiError, bad_request
from drakit.apiserver.requests.bodies import read_as, read_body
from drakit.apiserver.requests.options import WriteOptions, parse_revision, write_options
from drakit.apiserver.storage.objects import StoredObject
from drakit.apiserver.storage.objectstore import conflict
from drakit.apiserver.verbs.context import ApiCall, ServerContext
from drakit.apiserver.verbs.managedfields import manager_of, precomputed_of, track
from drakit.apiserver.verbs.write import repeat_on_conflict
from drakit.base import fields, status
from drakit.base.fields import Path

SCHEDULED = "PodScheduled"


class PodMetadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Target(msgspec.Struct, frozen=True):
    kind: str | None = None
    name: str | None = None


class _Binding(msgspec.Struct, frozen=True):
    metadata: PodMetadata = PodMetadata()
    target: _Target = _Target()


async def bind(context: ServerContext, call: ApiCall) -> None:
    """Handle a POST of a Binding."""
    options = write_options(call.request, "CreateOptions")
    sent = read_body(call.request)
    binding = read_as(_Binding, "Binding", sent)
    check_name(call, "Binding", binding.metadata)
    _check_binding(call, binding)

    async def write_once() -> None:
        old = await context.objects.get(call.kind, call.namespace, call.name)
        _check_pod(call, old, binding)
        await _assign(context, call, old, binding, options, sent=sent)

    await repeat_on_conflict(call.kind, call.name, write_once)


def check_name(call: ApiCall, kind: str, metadata: PodMetadata) -> None:
    # The name may be left out: the path has it.
    name = metadata.name or call.name
    if name != call.name:
        raise bad_request(f"name in URL does not match name in {kind} object: {call.name} and {name}")


def _check_binding(call: ApiCall, binding: _Binding) -> None:
    target = binding.target
    found = []
    if target.kind and target.kind != "Node":
        found.append(fields.not_supported(Path("target") / "kind", target.kind, ("Node", "<empty>")))
    if not target.name:
        found.append(fields.required(Path("target") / "name"))
    if found:
        raise ApiError(status.invalid("Binding", "", call.name, found))


def _check_pod(call: ApiCall, pod: StoredObject, binding: _Binding) -> None:
    """Refuse a pod that is bound, gated or being deleted, or is not the pod that the scheduler means."""
    metadata = binding.metadata
    name, spec = call.name, pod.document["spec"]
    if metadata.uid and metadata.uid != pod.uid:
        why = f"Precondition failed: UID in precondition: {metadata.uid}, UID in object meta: {pod.uid}"
        raise conflict(call.kind, name, why)
    if metadata.resource_version and parse_revision(metadata.resource_version) != pod.revision:
        raise conflict(call.kind, name)
    if pod.metadata.get("deletionTimestamp"):
        raise _unbound(call, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise _unbound(call, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise _unbound(call, f"pod {name} has non-empty .spec.schedulingGates")


def _unbound(call: ApiCall, why: str) -> ApiError:
    return ApiError(status.conflict("pods/binding", "", call.name, why))


async def _assign(
    context: ServerContext, call: ApiCall, old: StoredObject, binding: _Binding, options: WriteOptions, *, sent: Any
) -> None:
    now = context.timestamp()
    new = _assigned(old.document, binding, now)
    track(call, old, new, manager_of(call.request, options), now)
    change = call.change(UPDATE, call.name, new=new, old=old, dry_run=options.dry_run, sent=sent)
    # No strategy and no rules: a binding changes nothing but what `_assigned` sets.
    await context.admission.admit(change)
    await context.admission.validate(change)
    if not options.dry_run:
        await context.objects.update(old, new, precomputed=precomputed_of(call, change))


def _assigned(pod: Plain, binding: _Binding, now: str) -> Plain:
    metadata = dict(pod["metadata"])
    for name, given in (("labels", binding.metadata.labels), ("annotations", binding.metadata.annotations)):
        if given:
            metadata[name] = {**(metadata.get(name) or {}), **given}
    # Upstream sets the condition together with the node: nobody sees a bound pod that is not scheduled.
    scheduled = {"type": SCHEDULED, "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    others = [each for each in pod["status"].get("conditions") or () if each.get("type") != SCHEDULED]
    status = {name: value for name, value in pod["status"].items() if name != "nominatedNodeName"}
    return {
        **pod,
        "metadata": metadata,
        "spec": {**pod["spec"], "nodeName": binding.target.name},
        "status": {**status, "conditions": [*others, scheduled]},
    }
