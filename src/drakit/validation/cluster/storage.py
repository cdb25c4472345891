"""Storage: volumes, claims for them, classes, and what CSI drivers say of themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from drakit.api import Partial
from drakit.api.objects.plain import Plain
from drakit.base import names
from drakit.base.fields import FieldError, Path, duplicate, forbidden, invalid, not_supported, required
from drakit.validation.cluster.documentrules import (
    check_name,
    check_not_negative,
    check_once,
    check_present,
    check_selector_labels,
    check_words,
)

_SPEC = Path("spec")
_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_MODES = ("Block", "Filesystem")
_SHORTEST_TOKEN, _SHORTEST_UPDATE = 600, 10
_BESIDE_SOURCES = frozenset(
    (
        "capacity", "accessModes", "claimRef", "persistentVolumeReclaimPolicy", "storageClassName", "mountOptions",
        "volumeMode", "nodeAffinity", "volumeAttributesClassName",
    )
)  # fmt: skip


def _spec(obj: Partial[Any]) -> Plain:
    found: Plain = obj.document.get("spec") or {}
    return found


def _check_access(spec: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    modes = spec.get("accessModes") or ()
    if not modes:
        yield required(path / "accessModes", "at least 1 access mode is required")
    for mode in modes:
        if mode not in _ACCESS_MODES:
            yield not_supported(path / "accessModes", mode, _ACCESS_MODES)


def _check_mode_and_class(spec: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    if spec.get("storageClassName"):
        yield from check_name(spec["storageClassName"], names.check_dns_subdomain, path / "storageClassName")
    if spec.get("volumeMode") is not None:
        yield from check_words(spec["volumeMode"], _MODES, path / "volumeMode")


def check_volume(obj: Partial[Any]) -> Iterator[FieldError]:
    spec = _spec(obj)
    yield from _check_access(spec, _SPEC)
    if not spec.get("capacity"):
        yield required(_SPEC / "capacity")
    elif set(spec["capacity"]) != {"storage"}:
        yield not_supported(_SPEC / "capacity", ", ".join(spec["capacity"]), ("storage",))
    sources = [name for name in spec if name not in _BESIDE_SOURCES]
    if not sources:
        yield required(_SPEC, "must specify a volume type")
    for extra in sources[1:]:
        yield forbidden(_SPEC / extra, "may not specify more than 1 volume type")
    policy = spec.get("persistentVolumeReclaimPolicy") or "Retain"
    yield from check_words(policy, ("Delete", "Recycle", "Retain"), _SPEC / "persistentVolumeReclaimPolicy")
    yield from _check_mode_and_class(spec, _SPEC)


def check_volume_claim(obj: Partial[Any]) -> Iterator[FieldError]:
    yield from check_claim_spec(_spec(obj), _SPEC)


def check_claim_spec(spec: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    """A claim of its own, or the template of one."""
    yield from check_selector_labels(spec.get("selector"), path / "selector")
    yield from _check_access(spec, path)
    if "storage" not in ((spec.get("resources") or {}).get("requests") or {}):
        yield required((path / "resources").key("storage"))
    yield from _check_mode_and_class(spec, path)
    for field in ("dataSource", "dataSourceRef"):
        if spec.get(field) is not None:
            yield from _check_source(spec[field], path / field)


def _check_source(source: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    yield from check_present(source.get("name"), path / "name")
    yield from check_present(source.get("kind"), path / "kind")
    group, kind = source.get("apiGroup") or "", source.get("kind")
    if group:
        yield from check_name(group, names.check_dns_subdomain, path / "apiGroup")
    elif kind and kind != "PersistentVolumeClaim":
        yield invalid(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")


def check_storage_class(obj: Partial[Any]) -> Iterator[FieldError]:
    yield from _check_provisioner(obj.document.get("provisioner"), Path("provisioner"))
    modes = ("Immediate", "WaitForFirstConsumer")
    for name, words in (("reclaimPolicy", ("Delete", "Retain")), ("volumeBindingMode", modes)):
        yield from check_words(obj.document.get(name), words, Path(name))
    for index, term in enumerate(obj.document.get("allowedTopologies") or ()):
        where = Path("allowedTopologies")[index] / "matchLabelExpressions"
        for at, each in enumerate(term.get("matchLabelExpressions") or ()):
            yield from _check_topology(each, where[at])


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


def check_storage_class_update(new: Partial[Any], old: Partial[Any]) -> Iterator[FieldError]:
    for name in ("parameters", "provisioner", "reclaimPolicy"):
        if new.document.get(name) != old.document.get(name):
            yield forbidden(Path(name), f"updates to {name} are forbidden.")


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
