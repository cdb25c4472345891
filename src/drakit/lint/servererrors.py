"""Errors: what a server would say to each object, field by field, and what it would drop without a word."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from drakit.api import ObjectMeta, Partial
from drakit.api.codec.documents import Object
from drakit.api.registry import deprecation
from drakit.base.fields import FieldError
from drakit.base.gates import FeatureGates
from drakit.lint.findings import Draft, Severity, find, warn
from drakit.manifests import Manifest
from drakit.validation import (
    Context,
    drop_disabled_fields,
    dropped_fields,
    empty_lists,
    validate_create,
    validate_status_update,
    warnings_about,
)


def check_manifest(manifest: Manifest, gates: FeatureGates) -> Iterator[Draft]:
    kept = drop_disabled_fields(manifest.object, None, gates)
    for each in (*dropped_fields(manifest.object, None, gates), *warnings_about(kept, None, gates)):
        yield warn(manifest, each.rule, str(each.path), each.message)
    for error in _errors(replace(manifest, object=kept), gates):
        yield find(manifest, Severity.ERROR, "invalid", str(error.path), error.body)
    message = deprecation(manifest.kind.group_version(manifest.version), manifest.kind.kind) or ""
    newest = manifest.kind.versions[0]
    if message and manifest.version != newest:
        better = manifest.kind.group_version(newest)
        yield warn(manifest, "deprecated-version", "apiVersion", f"{message}; use {better}")


def _errors(manifest: Manifest, gates: FeatureGates) -> tuple[FieldError, ...]:
    """Errors of the object on creation, and of its status on a status update. Some may appear twice."""
    context = Context(gates=gates, empty_lists=empty_lists(manifest.document))
    errors = validate_create(manifest.object, context)
    if not manifest.document.get("status"):
        return errors
    stored = _stored(manifest.object)
    return errors + validate_status_update(stored, _without_status(stored), context)


def _stored(obj: Object) -> Object:
    """The object with a resourceVersion, as if a server had stored it."""
    if isinstance(obj, Partial):
        known = {"resourceVersion": "1", **(obj.document.get("metadata") or {})}
        return Partial.of(type(obj.view), {**obj.document, "metadata": known})
    metadata: ObjectMeta = obj.metadata  # type: ignore[attr-defined]
    return replace(obj, metadata=replace(metadata, resource_version=metadata.resource_version or "1"))


def _without_status(obj: Object) -> Object:
    if isinstance(obj, Partial):
        return Partial.of(type(obj.view), {name: part for name, part in obj.document.items() if name != "status"})
    empty: Any = type(obj)()
    return replace(obj, status=empty.status) if hasattr(empty, "status") else obj
