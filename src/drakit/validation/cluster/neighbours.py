"""Kinds that are kept whole: what a client most easily gets wrong, on the document."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from drakit.api import Partial
from drakit.api.objects.cluster import ReplicaSet
from drakit.api.objects.plain import Plain, from_plain
from drakit.base.fields import FieldError, Path, forbidden, invalid, not_supported, required

Check = Callable[[Partial[Any]], Iterator[FieldError]]
_SPEC = Path("spec")
_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_BESIDE_SOURCES = frozenset(
    (
        "capacity", "accessModes", "claimRef", "persistentVolumeReclaimPolicy", "storageClassName", "mountOptions",
        "volumeMode", "nodeAffinity", "volumeAttributesClassName",
    )
)  # fmt: skip


def _spec(obj: Partial[Any]) -> Plain:
    found: Plain = obj.document.get("spec") or {}
    return found


def _check_stateful_set(obj: Partial[Any]) -> Iterator[FieldError]:
    view = from_plain(ReplicaSet, obj.document).spec
    labels = view.template.metadata.labels
    if view.replicas is not None and view.replicas < 0:
        yield invalid(_SPEC / "replicas", view.replicas, "must be greater than or equal to 0")
    if view.selector is None:
        yield required(_SPEC / "selector")
    elif not (view.selector.match_labels or view.selector.match_expressions):
        yield invalid(_SPEC / "selector", {}, "empty selector is invalid for statefulset")
    elif any(labels.get(key) != value for key, value in view.selector.match_labels.items()):
        at = _SPEC / "template" / "metadata" / "labels"
        yield invalid(at, dict(labels), "`selector` does not match template `labels`")
    if view.template.spec.restart_policy != "Always":
        at = _SPEC / "template" / "spec" / "restartPolicy"
        yield not_supported(at, view.template.spec.restart_policy, ("Always",))


def _check_access(spec: Plain) -> Iterator[FieldError]:
    modes = spec.get("accessModes") or ()
    if not modes:
        yield required(_SPEC / "accessModes", "at least 1 access mode is required")
    for mode in modes:
        if mode not in _ACCESS_MODES:
            yield not_supported(_SPEC / "accessModes", mode, _ACCESS_MODES)


def _check_volume(obj: Partial[Any]) -> Iterator[FieldError]:
    spec = _spec(obj)
    yield from _check_access(spec)
    if not spec.get("capacity"):
        yield required(_SPEC / "capacity")
    elif set(spec["capacity"]) != {"storage"}:
        yield not_supported(_SPEC / "capacity", ", ".join(spec["capacity"]), ("storage",))
    sources = [name for name in spec if name not in _BESIDE_SOURCES]
    if not sources:
        yield required(_SPEC, "must specify a volume type")
    for extra in sources[1:]:
        yield forbidden(_SPEC / extra, "may not specify more than 1 volume type")


def _check_volume_claim(obj: Partial[Any]) -> Iterator[FieldError]:
    spec = _spec(obj)
    yield from _check_access(spec)
    if "storage" not in ((spec.get("resources") or {}).get("requests") or {}):
        yield required((_SPEC / "resources").key("storage"))


def _check_storage_class(obj: Partial[Any]) -> Iterator[FieldError]:
    if not obj.document.get("provisioner"):
        yield required(Path("provisioner"))
    modes = ("Immediate", "WaitForFirstConsumer")
    for name, words in (("reclaimPolicy", ("Delete", "Retain")), ("volumeBindingMode", modes)):
        if (value := obj.document.get(name)) not in words:
            yield not_supported(Path(name), value, words)


def _check_autoscaler(obj: Partial[Any]) -> Iterator[FieldError]:
    spec = _spec(obj)
    most, least, target = spec.get("maxReplicas", 0), spec.get("minReplicas"), spec.get("scaleTargetRef") or {}
    for name in ("kind", "name"):
        if not target.get(name):
            yield required(_SPEC / "scaleTargetRef" / name)
    if least is not None and least < 1:
        yield invalid(_SPEC / "minReplicas", least, "must be greater than or equal to 1")
    if most < 1:
        yield invalid(_SPEC / "maxReplicas", most, "must be greater than 0")
    if least is not None and most < least:
        yield invalid(_SPEC / "maxReplicas", most, "must be greater than or equal to `minReplicas`")


def _check_ingress(obj: Partial[Any]) -> Iterator[FieldError]:
    if not _spec(obj).get("rules") and _spec(obj).get("defaultBackend") is None:
        yield invalid(_SPEC, _spec(obj), "either `defaultBackend` or `rules` must be specified")


def _check_endpoint_slice(obj: Partial[Any]) -> Iterator[FieldError]:
    kind, words = obj.document.get("addressType", ""), ("FQDN", "IPv4", "IPv6")
    if not kind:
        yield required(Path("addressType"))
    elif kind not in words:
        yield not_supported(Path("addressType"), kind, words)
    for index, endpoint in enumerate(obj.document.get("endpoints") or ()):
        if not endpoint.get("addresses"):
            yield required(Path("endpoints")[index] / "addresses", "must contain at least 1 address")


def _check_address(obj: Partial[Any]) -> Iterator[FieldError]:
    name = obj.view.metadata.name
    try:
        canonical = str(ipaddress.ip_address(name))
    except ValueError:
        canonical = ""
    if canonical != name:
        yield invalid(Path("metadata.name"), name, "not a valid IP address")
    parent = _spec(obj).get("parentRef")
    if parent is None:
        yield required(_SPEC / "parentRef")


def _check_api_service(obj: Partial[Any]) -> Iterator[FieldError]:
    spec, name = _spec(obj), obj.view.metadata.name
    wanted = f"{spec.get('version', '')}.{spec.get('group', '')}"
    if name != wanted:
        yield invalid(Path("metadata.name"), name, f'must be `spec.version+"."+spec.group`: "{wanted}"')


def _check_attachment(obj: Partial[Any]) -> Iterator[FieldError]:
    for name in ("attacher", "nodeName"):
        if not _spec(obj).get(name):
            yield required(_SPEC / name)
    if not (_spec(obj).get("source") or {}):
        yield required(_SPEC / "source", "must specify exactly one of inlineVolumeSpec and persistentVolumeName")


def check_storage_class_update(new: Partial[Any], old: Partial[Any]) -> Iterator[FieldError]:
    for name in ("parameters", "provisioner", "reclaimPolicy"):
        if new.document.get(name) != old.document.get(name):
            yield forbidden(Path(name), f"updates to {name} are forbidden.")


NEIGHBOUR_CHECKS: Mapping[str, Check] = {
    "StatefulSet": _check_stateful_set,
    "PersistentVolume": _check_volume,
    "PersistentVolumeClaim": _check_volume_claim,
    "StorageClass": _check_storage_class,
    "VolumeAttachment": _check_attachment,
    "HorizontalPodAutoscaler": _check_autoscaler,
    "Ingress": _check_ingress,
    "EndpointSlice": _check_endpoint_slice,
    "IPAddress": _check_address,
    "APIService": _check_api_service,
}
