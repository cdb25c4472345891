"""Validation of objects: the only place where the server calls the room `validation`.

In:  a change, after defaults, admission and preparation.
Out: the object without fields of disabled features; 422 with every error.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from functools import partial
from typing import Any, Protocol

from drakit.api.codec.documents import to_wire
from drakit.api.codec.specs import SPECS
from drakit.api.objects.claims import ResourceClaim
from drakit.api.objects.partial import Partial
from drakit.api.objects.plain import Plain
from drakit.api.registry import Kind
from drakit.apiserver.admission.chain import CREATE, ObjectChange
from drakit.apiserver.admission.criteria.worker import LARGE, Worker
from drakit.apiserver.failures import ApiError
from drakit.apiserver.kinds.served import known_kind
from drakit.apiserver.storage.objects import StoredObject
from drakit.apiserver.storage.objectstore import ObjectStore
from drakit.apiserver.strategies.podchanges import check_ephemeral, check_resize
from drakit.base import status
from drakit.base.fields import FieldError
from drakit.base.gates import FeatureGates
from drakit.base.structs import Model
from drakit.base.wellknown import ADMIN_ACCESS_LABEL
from drakit.validation import (
    Context,
    drop_deallocated_devices,
    drop_disabled_fields,
    empty_lists,
    has_admin_access,
    validate_create,
    validate_status_update,
    validate_update,
)

_NAMESPACE = known_kind("v1", "Namespace")
_NONE: frozenset[str] = frozenset()

Object = Model | Partial[Any]


class WriteRules(Protocol):
    def drop_disabled(self, change: ObjectChange) -> bool:
        """Remove fields of disabled features from `change.new`. Return whether there were any."""
        ...

    def check(self, change: ObjectChange) -> Awaitable[Sequence[FieldError]]:
        """The errors of `change.new`, as a new object or as an update of `change.old`."""
        ...


class ObjectRules:
    """The rules of each kind, from the room `validation`."""

    def __init__(self, gates: FeatureGates, objects: ObjectStore, worker: Worker | None = None) -> None:
        """Large objects are validated in the worker's thread."""
        self._gates = gates
        self._objects = objects
        self._worker = worker

    def drop_disabled(self, change: ObjectChange) -> bool:
        # Made once here, used again by `check` unless the object changes in between.
        new = change.typed = typed(change.kind, change.document)
        old = typed_stored(change.old) if change.old is not None else None
        dropped = drop_disabled_fields(new, old, self._gates)
        if change.subresource == "status" and isinstance(dropped, ResourceClaim) and isinstance(old, ResourceClaim):
            dropped = drop_deallocated_devices(dropped, old)
        if dropped is new:
            return False
        change.undropped = new
        change.document.update(to_wire(dropped))
        change.typed = None
        return True

    async def check(self, change: ObjectChange) -> Sequence[FieldError]:
        if change.typed is None:
            change.typed = typed(change.kind, change.document)
        new = change.typed
        context = Context(
            gates=self._gates,
            empty_lists=_empty_lists(change),
            admin_namespace=await self._is_admin_namespace(change) if has_admin_access(new) else None,
            version=change.version,
        )
        if change.size >= LARGE and self._worker is not None:
            return await self._worker.call(partial(_validate, change, new, context))
        return _validate(change, new, context)

    async def _is_admin_namespace(self, change: ObjectChange) -> bool:
        namespace = await self._objects.find(_NAMESPACE, "", change.namespace)
        return namespace is not None and namespace.labels.get(ADMIN_ACCESS_LABEL) == "true"


def _validate(change: ObjectChange, new: Object, context: Context) -> Sequence[FieldError]:
    if change.operation == CREATE or change.old is None:
        return validate_create(new, context)
    old = typed_stored(change.old)
    match change.subresource:
        case "status":
            return validate_status_update(new, old, context)
        # Upstream has no rules of update for these: the object must be valid as a new one, and change little.
        case "resize":
            return (*validate_create(new, context), *check_resize(change.document, change.old.document))
        case "ephemeralcontainers":
            return (*validate_create(new, context), *check_ephemeral(change.document, change.old.document))
    return validate_update(new, old, context)


def _empty_lists(change: ObjectChange) -> frozenset[str]:
    """Paths of empty lists that the client sent. Slices, templates and claim status have rules that need them.

    Of a claim they are shown where its spec was changed.
    """
    if not isinstance(change.sent, dict):
        return _NONE
    match change.kind.kind, change.subresource:
        case "ResourceSlice" | "ResourceClaimTemplate", "":
            return empty_lists(change.sent)
        case "ResourceClaim", "status":
            return empty_lists({"status": change.sent.get("status")})
        case "ResourceClaim", "" if change.old is not None and change.document["spec"] != change.old.document["spec"]:
            return empty_lists({"spec": change.sent.get("spec")})
    return _NONE


def typed(kind: Kind, document: Plain) -> Object:
    """The object as validation wants it: a struct; for a kind modelled in part, the document with its view."""
    struct = SPECS.to_struct(kind.model, document)
    return struct if kind.fully_typed else Partial(document, struct)


def typed_stored(stored: StoredObject) -> Object:
    return stored.typed if stored.kind.fully_typed else stored.partial


def refusal(change: ObjectChange, errors: Sequence[FieldError]) -> ApiError:
    """422 with every error."""
    return ApiError(status.invalid(change.kind.kind, change.kind.group, change.name, errors))
