"""Storage: volumes, claims for them, classes, and what CSI drivers say of themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from posixpath import normpath
from typing import Any

from drakit.api import Partial
from drakit.api.objects.plain import Plain, from_plain
from drakit.base import names
from drakit.base.fields import FieldError, Path, duplicate, forbidden, invalid, not_supported, required
from drakit.base.nodeselectors import NodeSelector
from drakit.base.quantity import Quantity
from drakit.validation.fields.documentrules import (
    check_name,
    check_not_negative,
    check_once,
    check_present,
    check_selector_labels,
    check_words,
)
from drakit.validation.fields.nodeselectors import check_node_selector
from drakit.validation.fields.volumeclaims import NOT_POSITIVE, check_access, check_claim_spec, check_mode_and_class
from drakit.validation.fields.volumesources import check_sources

_SPEC = Path("spec")
_RECYCLE = "Recycle"
_SHORTEST_TOKEN, _SHORTEST_UPDATE = 600, 10


def _spec(obj: Partial[Any]) -> Plain:
    found: Plain = obj.document.get("spec") or {}
    return found


def check_volume(obj: Partial[Any]) -> Iterator[FieldError]:
    spec = _spec(obj)
    if not spec.get("accessModes"):
        yield required(_SPEC / "accessModes")
    yield from check_access(spec, _SPEC)
    yield from _check_capacity(spec.get("capacity") or {}, _SPEC / "capacity")
    policy = spec.get("persistentVolumeReclaimPolicy") or "Retain"
    yield from check_words(policy, ("Delete", _RECYCLE, "Retain"), _SPEC / "persistentVolumeReclaimPolicy")
    yield from _check_affinity(spec.get("nodeAffinity"), _SPEC / "nodeAffinity")
    yield from check_sources(spec, obj.view.metadata.name, _SPEC)
    host = (spec.get("hostPath") or {}).get("path") or ""
    if host.startswith("/") and normpath(host).strip("/") == "" and policy == _RECYCLE:
        detail = "may not be 'recycle' for a hostPath mount of '/'"
        yield forbidden(_SPEC / "persistentVolumeReclaimPolicy", detail)
    yield from check_mode_and_class(spec, _SPEC)
    yield from _check_attributes(spec, _SPEC)


def _check_capacity(capacity: Mapping[str, str], path: Path) -> Iterator[FieldError]:
    if not capacity:
        yield required(path)
    if set(capacity) != {"storage"}:
        yield not_supported(path, capacity or None, ("storage",))
    for name, text in capacity.items():
        amount = Quantity.parse(text)
        if amount.value < 0:
            yield invalid(path.key(name), amount.value, "must be a valid resource quantity")
        if amount.sign <= 0:
            yield invalid(path.key(name), text, NOT_POSITIVE)


def _check_affinity(affinity: Mapping[str, Any] | None, path: Path) -> Iterator[FieldError]:
    if affinity is None:
        return
    if affinity.get("required") is None:
        yield required(path / "required", "must specify required node constraints")
    else:
        yield from check_node_selector(from_plain(NodeSelector, affinity["required"]), path / "required")


def _check_attributes(spec: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    name, where = spec.get("volumeAttributesClassName"), path / "volumeAttributesClassName"
    if name is None:
        return
    if not name:
        yield required(where, "an empty string is disallowed")
    else:
        yield from check_name(name, names.check_dns_subdomain, where)
    if spec.get("csi") is None:
        yield required(path / "csi", "has to be specified when using volumeAttributesClassName")


def check_volume_claim(obj: Partial[Any]) -> Iterator[FieldError]:
    yield from check_claim_spec(_spec(obj), _SPEC)


def check_storage_class(obj: Partial[Any]) -> Iterator[FieldError]:
    yield from _check_provisioner(obj.document.get("provisioner"), Path("provisioner"))
    modes = ("Immediate", "WaitForFirstConsumer")
    for name, words in (("reclaimPolicy", ("Delete", "Retain")), ("volumeBindingMode", modes)):
        if obj.document.get(name) or name == "volumeBindingMode":
            yield from check_words(obj.document.get(name), words, Path(name))
    yield from _check_topologies(obj.document.get("allowedTopologies") or ())


def _check_topologies(terms: Sequence[Mapping[str, Any]]) -> Iterator[FieldError]:
    seen: list[Any] = [[]]
    for index, term in enumerate(terms):
        where, parts = (
            Path("allowedTopologies")[index] / "matchLabelExpressions",
            term.get("matchLabelExpressions") or [],
        )
        for at, each in enumerate(parts):
            yield from _check_topology(each, where[at])
        yield from check_once((where[at] / "key", each.get("key")) for at, each in enumerate(parts))
        # One that says nothing counts as one that was said before.
        if parts in seen:
            yield duplicate(where, "")
        seen.append(parts)


def _check_topology(expression: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    values = expression.get("values") or ()
    if not values:
        yield required(path / "values")
    yield from check_once(((path / "values")[at], value) for at, value in enumerate(values))
    yield from check_name(expression.get("key"), names.check_label_key, path / "key")


def _check_provisioner(name: Any, path: Path) -> Iterator[FieldError]:
    if not name:
        yield required(path)
    else:
        yield from check_name(str(name).lower(), names.check_label_key, path)


def check_attachment(obj: Partial[Any]) -> Iterator[FieldError]:
    spec = _spec(obj)
    yield from _check_csi_name(spec.get("attacher"), _SPEC / "attacher")
    source = spec.get("source") or {}
    if not source:
        yield required(_SPEC / "source", "must specify exactly one of inlineVolumeSpec and persistentVolumeName")
    name = source.get("persistentVolumeName")
    if name is not None:
        where = _SPEC / "source" / "persistentVolumeName"
        if not name:
            yield required(where, "must specify non empty persistentVolumeName")
        yield from check_name(name, names.check_dns_subdomain, where)
    yield from check_name(spec.get("nodeName"), names.check_dns_subdomain, _SPEC / "nodeName")


def _check_csi_name(name: Any, path: Path) -> Iterator[FieldError]:
    if not name:
        yield required(path)
    else:
        yield from check_name(str(name).lower(), names.check_dns_subdomain, path)


def check_csi_node(obj: Partial[Any]) -> Iterator[FieldError]:
    drivers = _spec(obj).get("drivers") or ()
    for index, driver in enumerate(drivers):
        where = (_SPEC / "drivers")[index]
        yield from _check_csi_name(driver.get("name"), where / "name")
        yield from check_present(driver.get("nodeID"), where / "nodeID")
        yield from check_not_negative(driver.get("allocatable") or {}, where / "allocatable", "count")
        for key in driver.get("topologyKeys") or ():
            yield from check_present(key, where)
            yield from check_name(key, names.check_label_key, where)
        yield from check_once((where, key) for key in driver.get("topologyKeys") or ())
    yield from check_once(((_SPEC / "drivers")[at] / "name", each.get("name")) for at, each in enumerate(drivers))


def check_csi_driver(obj: Partial[Any]) -> Iterator[FieldError]:
    spec, seen = _spec(obj), set[str]()
    for index, request in enumerate(spec.get("tokenRequests") or ()):
        where = (_SPEC / "tokenRequests")[index]
        if request.get("audience", "") in seen:
            yield duplicate(where / "audience", request.get("audience", ""))
        seen.add(request.get("audience", ""))
        seconds = request.get("expirationSeconds")
        if seconds is not None and seconds < _SHORTEST_TOKEN:
            yield invalid(where / "expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
    policies = ("File", "None", "ReadWriteOnceWithFSType")
    if spec.get("fsGroupPolicy") is not None:
        yield from check_words(spec["fsGroupPolicy"], policies, _SPEC / "fsGroupPolicy")
    for mode in spec.get("volumeLifecycleModes") or ():
        yield from check_words(mode, ("Persistent", "Ephemeral"), _SPEC / "volumeLifecycleModes")
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < _SHORTEST_UPDATE:
        at = _SPEC / "nodeAllocatableUpdatePeriodSeconds"
        yield invalid(at, period, "must be greater than or equal to 10 seconds")


def check_storage_capacity(obj: Partial[Any]) -> Iterator[FieldError]:
    yield from check_name(obj.document.get("storageClassName"), names.check_dns_subdomain, Path("storageClassName"))
    yield from check_selector_labels(obj.document.get("nodeTopology"), Path("nodeTopology"))


def check_attributes_class(obj: Partial[Any]) -> Iterator[FieldError]:
    yield from _check_provisioner(obj.document.get("driverName"), Path("driverName"))
    if not obj.document.get("parameters"):
        yield required(Path("parameters"), "must contain at least one key/value pair")
