"""The kinds around the DRA kinds: names and labels of all, and what matters of a few.

In:  objects as documents with views.
Out: errors that a client would get from any Kubernetes; fields that drakit does not read pass unseen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from drakit.api import (
    ClusterRoleBinding,
    ConfigMap,
    Lease,
    ObjectMeta,
    Partial,
    ReplicaSet,
    ResourceQuota,
    RoleBinding,
    Secret,
)
from drakit.api.objects.apps import DaemonSet, Deployment
from drakit.api.objects.batch import Job
from drakit.api.objects.runtime import RuntimeClass
from drakit.api.registry import Kind
from drakit.base import names
from drakit.base.fields import FieldError, Path, forbidden, invalid, not_supported, required, too_long
from drakit.base.quantity import Quantity
from drakit.validation.cluster.apps import check_daemon_set, check_deployment, check_selector_update
from drakit.validation.cluster.batch import check_cron_job, check_job, check_job_update
from drakit.validation.cluster.events import check_event, check_event_update
from drakit.validation.cluster.limits import (
    check_budget,
    check_limit_range,
    check_runtime_class,
    check_runtime_class_update,
)
from drakit.validation.cluster.neighbours import NEIGHBOUR_CHECKS
from drakit.validation.cluster.podselectors import check_pod_selector
from drakit.validation.cluster.quotas import check_scopes
from drakit.validation.cluster.rbac import check_binding, check_binding_update, check_role
from drakit.validation.cluster.secrets import check_secret_type
from drakit.validation.cluster.updates import check_fields_that_stay
from drakit.validation.context import Context
from drakit.validation.fields.metadata import NameRule, check_labels, check_metadata, check_metadata_update
from drakit.validation.pods.details import check_pod_details
from drakit.validation.pods.resourcenames import is_quota_standard, is_standard, is_whole_number
from drakit.validation.pods.spec import check_pod_spec

DATA_SIZE = 1024 * 1024
HIGHEST_PRIORITY = 1_000_000_000
SYSTEM_PREFIX = "system-"
PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
SYSTEM_PRIORITIES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_SPEC = Path("spec")

NAME_RULES: Mapping[str, NameRule] = {
    "Namespace": names.check_dns_label,
    "Service": names.check_dns_label,
    "StatefulSet": names.check_dns_label,
    "Role": names.check_path_segment,
    "ClusterRole": names.check_path_segment,
    "RoleBinding": names.check_path_segment,
    "ClusterRoleBinding": names.check_path_segment,
    "CertificateSigningRequest": names.check_path_segment,
    "PodDisruptionBudget": names.check_path_segment,
}
"""How objects of a kind are named, where that is not a DNS subdomain."""


_STAYS_FIRST = frozenset({"Secret", "IngressClass", "VolumeAttributesClass"})
"""Kinds of which an update is told first what it may not change."""


def check_object(kind: Kind, obj: Partial[Any], ctx: Context) -> Iterator[FieldError]:
    meta: ObjectMeta = obj.view.metadata
    if kind.kind == "Event":
        yield from check_event(obj, new=_is_of_events(ctx))
    rule = NAME_RULES.get(kind.kind, names.check_dns_subdomain)
    yield from check_metadata(meta, namespaced=kind.namespaced, name_rule=rule)
    content = _CONTENT.get(kind.kind)
    if content is not None:
        yield from content(obj)


def check_object_update(new: Partial[Any], old: Partial[Any], ctx: Context) -> Iterator[FieldError]:
    if new.document.get("kind") == "Event":
        yield from check_event(new, new=_is_of_events(ctx), creates=False)
        if _is_of_events(ctx):
            yield from check_event_update(new, old)
    yield from check_metadata_update(new.view.metadata, old.view.metadata)
    kind = str(new.document.get("kind"))
    if kind in _STAYS_FIRST:
        yield from check_fields_that_stay(new, old)
    content = None if kind == "PriorityClass" else _CONTENT.get(kind)
    if content is not None:
        yield from content(new)
    if isinstance(new.view, ConfigMap | Secret):
        yield from _check_frozen(new, old)
    if isinstance(new.view, ReplicaSet | Deployment | DaemonSet):
        yield from check_selector_update(new, old)
    if isinstance(new.view, Job):
        yield from check_job_update(new, old)
    if isinstance(new.view, RuntimeClass):
        yield from check_runtime_class_update(new, old)
    if isinstance(new.view, RoleBinding | ClusterRoleBinding):
        yield from check_binding_update(new.view, old.view)
    if new.document.get("kind") == "PriorityClass" and _value(new) != _value(old):
        yield forbidden(Path("value"), "may not be changed in an update.")
    if kind not in _STAYS_FIRST:
        yield from check_fields_that_stay(new, old)


def _is_of_events(ctx: Context) -> bool:
    """Whether an event comes by the group that has only events. It is a version of the core kind here."""
    return ctx.version.startswith("events")


def check_object_status_update(new: Partial[Any], old: Partial[Any], _ctx: Context) -> Iterator[FieldError]:
    yield from check_metadata_update(new.view.metadata, old.view.metadata)
    if isinstance(new.view, ResourceQuota):
        for name in ("hard", "used"):
            yield from _check_amounts(getattr(new.view.status, name), Path("status") / name)


def _check_quota(obj: Partial[ResourceQuota]) -> Iterator[FieldError]:
    yield from _check_amounts(obj.view.spec.hard, _SPEC / "hard")
    yield from check_scopes(obj.document.get("spec") or {})


def _check_secret(obj: Partial[Secret]) -> Iterator[FieldError]:
    yield from _check_data(obj)
    yield from check_secret_type(obj)


def _check_priority(obj: Partial[Any]) -> Iterator[FieldError]:
    """Two classes above all others belong to the system, and nobody else's is as high."""
    name, value = obj.view.metadata.name, _value(obj)
    if name.startswith(SYSTEM_PREFIX):
        if SYSTEM_PRIORITIES.get(name) != value:
            detail = f"priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only"
            yield forbidden(Path("metadata.name"), f"{detail}. error: {name} is not a known system priority class")
    elif value > HIGHEST_PRIORITY:
        yield forbidden(Path("value"), f"maximum allowed value of a user defined priority is {HIGHEST_PRIORITY}")
    policy = obj.document.get("preemptionPolicy")
    if policy == "":
        yield required(Path("preemptionPolicy"))
    elif policy is not None and policy not in PREEMPTION_POLICIES:
        yield not_supported(Path("preemptionPolicy"), policy, PREEMPTION_POLICIES)


def _value(priority_class: Partial[Any]) -> int:
    value: int = priority_class.document.get("value") or 0
    return value


def _check_lease(obj: Partial[Lease]) -> Iterator[FieldError]:
    spec = obj.view.spec
    if spec.lease_duration_seconds is not None and spec.lease_duration_seconds <= 0:
        yield invalid(_SPEC / "leaseDurationSeconds", spec.lease_duration_seconds, "must be greater than 0")
    if spec.lease_transitions is not None and spec.lease_transitions < 0:
        yield invalid(_SPEC / "leaseTransitions", spec.lease_transitions, "must be greater than or equal to 0")


def _check_amounts(amounts: Mapping[str, Quantity], path: Path) -> Iterator[FieldError]:
    for name, amount in amounts.items():
        where = path.key(name)
        yield from _check_quota_name(name, where)
        if amount.sign < 0:
            yield invalid(where, str(amount), "must be greater than or equal to 0")
        if is_whole_number(name) and not amount.is_whole:
            yield invalid(where, str(amount), "must be an integer")


def _check_quota_name(name: str, path: Path) -> Iterator[FieldError]:
    for message in names.check_qualified_name(name):
        yield invalid(path, name, message)
    if "/" in name:
        return
    if not is_standard(name):
        yield invalid(path, name, "must be a standard resource type or fully qualified")
    if not is_quota_standard(name):
        yield invalid(path, name, "must be a standard resource for quota")


def _check_data(obj: Partial[Any]) -> Iterator[FieldError]:
    view: ConfigMap | Secret = obj.view
    parts = {"data": view.data, **({"binaryData": view.binary_data} if isinstance(view, ConfigMap) else {})}
    for part, entries in parts.items():
        for key in entries:
            for message in names.check_config_key(key):
                yield invalid(Path(part).key(key), key, message)
    total = sum(names.size(value) for entries in parts.values() for value in entries.values())
    if total > DATA_SIZE:
        yield too_long(Path() if isinstance(view, ConfigMap) else Path("data"), DATA_SIZE)


def _check_frozen(new: Partial[Any], old: Partial[Any]) -> Iterator[FieldError]:
    """Data that was declared immutable stays, and stays declared so."""
    if not old.view.immutable:
        return
    if not new.view.immutable:
        yield forbidden(Path("immutable"), "field is immutable when `immutable` is set")
    for name in ("data", "binaryData", "stringData"):
        if (new.document.get(name) or None) != (old.document.get(name) or None):
            yield forbidden(Path(name), "field is immutable when `immutable` is set")


def _check_replica_set(obj: Partial[ReplicaSet]) -> Iterator[FieldError]:
    spec = obj.view.spec
    for name, value in (("replicas", spec.replicas), ("minReadySeconds", spec.min_ready_seconds)):
        if value is not None and value < 0:
            yield invalid(_SPEC / name, value, "must be greater than or equal to 0")
    yield from check_pod_selector(obj.document["spec"], _SPEC, "deployment")
    yield from check_labels(spec.template.metadata.labels, _SPEC / "template" / "labels")
    yield from check_pod_spec(spec.template.spec, _SPEC / "template" / "spec")
    template = obj.document["spec"].get("template") or {}
    yield from check_pod_details(template.get("spec") or {}, _SPEC / "template" / "spec")


def _check_role(obj: Partial[Any]) -> Iterator[FieldError]:
    return check_role(obj.view)


def _check_binding(obj: Partial[Any]) -> Iterator[FieldError]:
    return check_binding(obj.view)


_CONTENT: Mapping[str, Callable[[Partial[Any]], Iterator[FieldError]]] = {
    "ResourceQuota": _check_quota,
    "ConfigMap": _check_data,
    "Secret": _check_secret,
    "ReplicaSet": _check_replica_set,
    "Deployment": check_deployment,
    "DaemonSet": check_daemon_set,
    **NEIGHBOUR_CHECKS,
    "Job": check_job,
    "CronJob": check_cron_job,
    "PodDisruptionBudget": check_budget,
    "LimitRange": check_limit_range,
    "RuntimeClass": check_runtime_class,
    "PriorityClass": _check_priority,
    "Lease": _check_lease,
    "Role": _check_role,
    "ClusterRole": _check_role,
    "RoleBinding": _check_binding,
    "ClusterRoleBinding": _check_binding,
}
