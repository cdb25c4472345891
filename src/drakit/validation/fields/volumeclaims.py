"""Claims for volumes: a claim of its own, a StatefulSet's template of one, or a pod's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from drakit.base import names
from drakit.base.fields import FieldError, Path, forbidden, invalid, not_supported, required
from drakit.base.quantity import Quantity
from drakit.validation.fields.documentrules import check_name, check_present, check_selector_labels, check_words

NOT_POSITIVE = "must be greater than zero"
_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_ONE_POD = "ReadWriteOncePod"
_MODES = ("Block", "Filesystem")


def check_access(spec: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    modes = spec.get("accessModes") or ()
    for mode in modes:
        if mode not in _ACCESS_MODES:
            yield not_supported(path / "accessModes", mode, _ACCESS_MODES)
    known = {mode for mode in modes if mode in _ACCESS_MODES}
    if _ONE_POD in known and known != {_ONE_POD}:
        yield forbidden(path / "accessModes", f"may not use {_ONE_POD} with other access modes")


def check_mode_and_class(spec: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    if spec.get("storageClassName"):
        yield from check_name(spec["storageClassName"], names.check_dns_subdomain, path / "storageClassName")
    if spec.get("volumeMode") is not None:
        yield from check_words(spec["volumeMode"], _MODES, path / "volumeMode")


def check_claim_spec(spec: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    """A claim of its own, or the template of one."""
    if not spec.get("accessModes"):
        yield required(path / "accessModes", "at least 1 access mode is required")
    yield from check_selector_labels(spec.get("selector"), path / "selector")
    yield from check_access(spec, path)
    size, where = ((spec.get("resources") or {}).get("requests") or {}).get("storage"), path / "resources"
    if size is None:
        yield required(where.key("storage"))
    elif Quantity.parse(size).sign <= 0:
        yield invalid(where.key("storage"), size, NOT_POSITIVE)
    yield from check_mode_and_class(spec, path)
    for field in ("dataSource", "dataSourceRef"):
        if spec.get(field) is not None:
            yield from _check_source(spec[field], path / field)
    sources = [spec.get(field) for field in ("dataSource", "dataSourceRef")]
    if None not in sources and sources[0] != sources[1] and not (sources[1] or {}).get("namespace"):
        yield invalid(path, {}, "must match dataSourceRef")
    if spec.get("volumeAttributesClassName"):
        where = path / "volumeAttributesClassName"
        yield from check_name(spec["volumeAttributesClassName"], names.check_dns_subdomain, where)


def _check_source(source: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    yield from check_present(source.get("name"), path / "name")
    yield from check_present(source.get("kind"), path / "kind")
    group, kind = source.get("apiGroup") or "", source.get("kind")
    if group:
        yield from check_name(group, names.check_dns_subdomain, path / "apiGroup")
    elif kind and kind != "PersistentVolumeClaim":
        yield invalid(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")
