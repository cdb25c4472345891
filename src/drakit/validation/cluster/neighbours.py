"""Kinds that are kept whole: what a client most easily gets wrong, on the document."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from drakit.api import Partial
from drakit.api.objects.plain import Plain
from drakit.base.fields import FieldError, Path, invalid, required
from drakit.validation.cluster import services, storage
from drakit.validation.cluster.templates import (
    check_pod_template,
    check_replication_controller,
    check_revision,
    check_stateful_set,
)

Check = Callable[[Partial[Any]], Iterator[FieldError]]
_SPEC = Path("spec")


def _spec(obj: Partial[Any]) -> Plain:
    found: Plain = obj.document.get("spec") or {}
    return found


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


NEIGHBOUR_CHECKS: Mapping[str, Check] = {
    "StatefulSet": check_stateful_set,
    "ReplicationController": check_replication_controller,
    "PodTemplate": check_pod_template,
    "ControllerRevision": check_revision,
    "PersistentVolume": storage.check_volume,
    "PersistentVolumeClaim": storage.check_volume_claim,
    "StorageClass": storage.check_storage_class,
    "VolumeAttachment": storage.check_attachment,
    "CSINode": storage.check_csi_node,
    "CSIDriver": storage.check_csi_driver,
    "CSIStorageCapacity": storage.check_storage_capacity,
    "VolumeAttributesClass": storage.check_attributes_class,
    "Service": services.check_service,
    "Endpoints": services.check_endpoints,
    "HorizontalPodAutoscaler": _check_autoscaler,
    "Ingress": _check_ingress,
    "EndpointSlice": services.check_endpoint_slice,
    "IPAddress": _check_address,
    "APIService": _check_api_service,
}
