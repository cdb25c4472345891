"""Which rules an object of a kind must pass, when it is made, changed, or its status is.

In:  objects in the internal form, with defaults, after disabled fields were dropped and after the server filled in
     what it sets (names, uids, versions); for a change also the object before.
Out: every error with its path, up to a bound that only nonsense reaches. Pure: no clock, no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from drakit.api import (
    DeviceClass,
    DeviceTaintRule,
    ObjectMeta,
    Partial,
    Pod,
    PodGroup,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourcePoolStatusRequest,
    ResourceSlice,
    Workload,
)
from drakit.api.registry import find_kind
from drakit.base.fields import FieldError, Path, forbidden, invalid
from drakit.base.structs import Model
from drakit.validation.cluster import objects as cluster
from drakit.validation.cluster import workloads as groups
from drakit.validation.context import EVERYTHING_ON, Context
from drakit.validation.fields.metadata import told_of_metadata
from drakit.validation.pods import spec as pods
from drakit.validation.pods import status as podstatus
from drakit.validation.resource import allocations, claims, classes, poolstatus, slices, taintrules

Object = Model | Partial[Any]
Errors = Iterator[FieldError]
Create = Callable[[Any, Context], Errors]
Update = Callable[[Any, Any, Context], Errors]

_CREATE: Mapping[type[Model], Create] = {
    ResourceClaim: claims.check_claim,
    ResourceClaimTemplate: claims.check_template,
    ResourceSlice: slices.check_slice,
    DeviceClass: classes.check_device_class,
    DeviceTaintRule: taintrules.check_taint_rule,
    ResourcePoolStatusRequest: poolstatus.check_request,
    PodGroup: groups.check_pod_group,
    Workload: groups.check_workload,
    Pod: pods.check_pod,
}
_UPDATE: Mapping[type[Model], Update] = {
    ResourceClaim: claims.check_claim_update,
    ResourceClaimTemplate: claims.check_template_update,
    ResourceSlice: slices.check_slice_update,
    DeviceClass: classes.check_device_class_update,
    DeviceTaintRule: taintrules.check_taint_rule_update,
    ResourcePoolStatusRequest: poolstatus.check_request_update,
    PodGroup: groups.check_pod_group_update,
    Workload: groups.check_workload_update,
    Pod: pods.check_pod_update,
}
_STATUS_UPDATE: Mapping[type[Model], Update] = {
    ResourceClaim: allocations.check_claim_status_update,
    DeviceTaintRule: taintrules.check_taint_rule_status_update,
    ResourcePoolStatusRequest: poolstatus.check_request_status_update,
    PodGroup: groups.check_pod_group_status_update,
    Pod: podstatus.check_pod_status_update,
}
_CHECKED_WHOLLY = (ResourceClaim, ResourceClaimTemplate, DeviceClass, Pod)
MOST_ERRORS = 1000
CONDITIONAL_KINDS = frozenset({"ResourcePoolStatusRequest", "Lease"})
"""Kinds of which an update must say which version it replaces."""


def validate_create(obj: Object, ctx: Context = EVERYTHING_ON) -> tuple[FieldError, ...]:
    rule = _CREATE.get(_model(obj))
    if rule is not None:
        return _told(rule(obj, ctx))
    document = _document(obj)
    kind = find_kind(document.get("apiVersion", ""), document.get("kind", ""))
    if kind is None or "get" not in kind.verbs:
        # Reviews are answered, not stored: they have no name.
        return ()
    return _told(cluster.check_object(kind, _partial(obj), ctx))


def validate_update(new: Object, old: Object, ctx: Context = EVERYTHING_ON) -> tuple[FieldError, ...]:
    if missing := _missing_version(new):
        return missing
    rule: Update = _UPDATE.get(_model(new)) or cluster.check_object_update
    return _as_often(_told(rule(new, old, ctx)), new, old, wholly=_model(new) in _CHECKED_WHOLLY)


def validate_status_update(new: Object, old: Object, ctx: Context = EVERYTHING_ON) -> tuple[FieldError, ...]:
    """`new` is the old object with another status."""
    if missing := _missing_version(new):
        return missing
    rule: Update = _STATUS_UPDATE.get(_model(new)) or cluster.check_object_status_update
    return _as_often(_told(rule(new, old, ctx)), new, old, wholly=False)


def _told(errors: Errors) -> tuple[FieldError, ...]:
    """All errors; of very many the first. A body of 3 MB can break more rules than fit into a hundred."""
    # Rules are generators: what is beyond the limit is never computed.
    told = tuple(islice(errors, MOST_ERRORS))
    if next(errors, None) is None:
        return told
    return (*told, forbidden(Path(), f"more is wrong than this: only the first {MOST_ERRORS} errors are told"))


def _as_often(errors: tuple[FieldError, ...], new: Object, old: Object, *, wholly: bool) -> tuple[FieldError, ...]:
    """The errors of an update, with those of its metadata first and as often as Kubernetes tells them."""
    if not errors or not any(str(error.path).startswith("metadata") for error in errors):
        return errors
    told = _told(told_of_metadata(_metadata(new), _metadata(old), wholly=wholly))
    return (*told, *(error for error in errors if error not in told))


def _metadata(obj: Object) -> ObjectMeta:
    view: Any = obj.view if isinstance(obj, Partial) else obj
    found: ObjectMeta = view.metadata
    return found


def _model(obj: Object) -> type[Model]:
    return type(obj.view) if isinstance(obj, Partial) else type(obj)


def _partial(obj: Object) -> Partial[Any]:
    if not isinstance(obj, Partial):
        raise TypeError(f"{type(obj).__name__} is validated as a document with a view")
    return obj


def _document(obj: Object) -> Mapping[str, Any]:
    return _partial(obj).document


def _missing_version(new: Object) -> tuple[FieldError, ...]:
    view: Any = new.view if isinstance(new, Partial) else new
    if view.kind in CONDITIONAL_KINDS and not view.metadata.resource_version:
        return (invalid(Path("metadata.resourceVersion"), 0, "must be specified for an update"),)
    return ()
