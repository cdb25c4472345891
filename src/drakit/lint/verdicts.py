"""Errors: what a server would say to each object, field by field, and what it would drop without a word."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from drakit.api import Partial
from drakit.api.registry import deprecation
from drakit.base.fields import FieldError
from drakit.base.gates import FeatureGates
from drakit.lint.findings import Draft, Severity
from drakit.lint.subjects import Subject
from drakit.validation import Context, drop_disabled_fields, empty_lists, validate_create, validate_status_update


def check_subject(subject: Subject, gates: FeatureGates) -> Iterator[Draft]:
    kept = drop_disabled_fields(subject.object, None, gates)
    if kept is not subject.object:
        message = "fields of features that are off would be dropped; see --feature-gates"
        yield subject.warn("dropped-field", "", message)
    for error in _errors(replace(subject, object=kept), gates):
        yield subject.find(Severity.ERROR, "invalid", str(error.path), error.body)
    message = deprecation(subject.kind.group_version(subject.version), subject.kind.kind) or ""
    newest = subject.kind.versions[0]
    if message and subject.version != newest:
        better = subject.kind.group_version(newest)
        yield subject.warn("deprecated-version", "apiVersion", f"{message}; use {better}")


def _errors(subject: Subject, gates: FeatureGates) -> tuple[FieldError, ...]:
    """Of the object as a new one, and of the status that a saved object has."""
    context = Context(gates=gates, empty_lists=empty_lists(subject.document))
    errors = validate_create(subject.object, context)
    obj = subject.object
    if isinstance(obj, Partial) or not subject.document.get("status") or not hasattr(obj, "status"):
        return errors
    bare = replace(obj, status=type(obj)().status)  # type: ignore[attr-defined]
    version = replace(subject.metadata, resource_version=subject.metadata.resource_version or "1")
    errors += validate_status_update(replace(obj, metadata=version), replace(bare, metadata=version), context)
    return tuple(dict.fromkeys(errors))
