"""The scale subresource: how many replicas are wanted, and how many there are.

In:  GET, PUT and PATCH of `/scale`.
Out: a Scale of autoscaling/v1; a write changes `spec.replicas` of the replica set and nothing else.
"""

from __future__ import annotations

from typing import Any

import msgspec

from drakit.api.objects.plain import Plain, from_plain
from drakit.apiserver.failures import ApiError, unsupported_media_type
from drakit.apiserver.patching import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH
from drakit.apiserver.patching.bodies import read_merge, read_operations
from drakit.apiserver.patching.jsonpatches import apply_operations, merge_patch
from drakit.apiserver.requests.bodies import media_type, read_as, read_body
from drakit.apiserver.requests.options import parse_revision, write_options
from drakit.apiserver.storage.objects import StoredObject
from drakit.apiserver.storage.objectstore import Conflict, conflict
from drakit.apiserver.verbs.context import ApiCall, ServerContext
from drakit.apiserver.verbs.write import repeat_on_conflict, write_over
from drakit.base import fields, labels, status
from drakit.base.fields import Path


class _ScaleMetadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str | None = None


class _ScaleSpec(msgspec.Struct, frozen=True):
    replicas: int | None = None


class _Scale(msgspec.Struct, frozen=True):
    """The fields of a Scale that a write takes into account."""

    metadata: _ScaleMetadata = _ScaleMetadata()
    spec: _ScaleSpec = _ScaleSpec()


_META = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(stored: StoredObject) -> Plain:
    document = stored.document
    spec, now = document.get("spec") or {}, document.get("status") or {}
    metadata = {name: document["metadata"][name] for name in _META if name in document["metadata"]}
    shown: dict[str, Any] = {"replicas": now.get("replicas", 0)}
    if selector := spec.get("selector"):
        # A replication controller selects by labels alone.
        wanted_labels = selector if stored.kind.group else {"matchLabels": selector}
        shown["selector"] = str(labels.from_struct(from_plain(labels.LabelSelector, wanted_labels)))
    # Zero is left out: the field has `omitempty` upstream.
    wanted = {"replicas": spec["replicas"]} if spec.get("replicas") else {}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": wanted, "status": shown}


async def write_scale(context: ServerContext, call: ApiCall) -> StoredObject:
    """Handle a PUT or PATCH of a scale. Return the object that has it."""
    patching = call.request.method == "PATCH"
    options = write_options(call.request, "PatchOptions" if patching else "UpdateOptions")

    async def write_once() -> StoredObject:
        old = await context.objects.get(call.kind, call.namespace, call.name)
        sent = _patched(call, scale_of(old)) if patching else read_body(call.request)
        wanted = read_as(_Scale, "Scale", sent)
        replicas = _replicas(call, old, wanted)
        new = {**old.document, "spec": {**old.document["spec"], "replicas": replicas}}
        new["metadata"] = dict(new["metadata"])
        try:
            return await write_over(context, call, old, new, options, sent=sent)
        except Conflict:
            if wanted.metadata.resource_version:
                raise conflict(call.kind, call.name) from None
            raise

    return await repeat_on_conflict(call.kind, call.name, write_once)


def _patched(call: ApiCall, scale: Plain) -> Plain:
    match media_type(call.request):
        case kind if kind == JSON_PATCH:
            return apply_operations(scale, read_operations(call.request.body))
        case kind if kind in (MERGE_PATCH, STRATEGIC_MERGE_PATCH):
            merged: Plain = merge_patch(scale, read_merge(call.request.body))
            return merged
    raise unsupported_media_type()


def _replicas(call: ApiCall, old: StoredObject, scale: _Scale) -> int:
    given, replicas = scale.metadata.resource_version, scale.spec.replicas or 0
    if given and parse_revision(given) != old.revision:
        raise conflict(call.kind, call.name)
    if replicas < 0:
        error = fields.invalid(Path("spec") / "replicas", replicas, "must be greater than or equal to 0")
        raise ApiError(status.invalid("Scale", "autoscaling", call.name, [error]))
    return replicas
