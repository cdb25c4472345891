"""Kinds that are kept whole: what a client most easily gets wrong, on the document."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from drakit.api import Partial
from drakit.api.objects.plain import Plain
from drakit.base import names
from drakit.base.fields import FieldError, Path, invalid, required
from drakit.validation.cluster import network, services, storage
from drakit.validation.cluster.autoscalers import check_autoscaler
from drakit.validation.cluster.nodes import check_node
from drakit.validation.cluster.templates import (
    check_pod_template,
    check_replication_controller,
    check_revision,
    check_stateful_set,
)
from drakit.validation.fields.documentrules import check_name, check_present

Check = Callable[[Partial[Any]], Iterator[FieldError]]
_SPEC = Path("spec")


def _spec(obj: Partial[Any]) -> Plain:
    found: Plain = obj.document.get("spec") or {}
    return found


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
        return
    if parent.get("group"):
        yield from check_name(parent["group"], names.check_dns_subdomain, _SPEC / "parentRef" / "group")
    for field in ("resource", "name"):
        yield from check_present(parent.get(field), _SPEC / "parentRef" / field)


def _check_api_service(obj: Partial[Any]) -> Iterator[FieldError]:
    spec, name = _spec(obj), obj.view.metadata.name
    wanted = f"{spec.get('version', '')}.{spec.get('group', '')}"
    if name != wanted:
        yield invalid(Path("metadata.name"), name, f'must be `spec.version+"."+spec.group`: "{wanted}"')


NEIGHBOUR_CHECKS: Mapping[str, Check] = {
    "Node": check_node,
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
    "HorizontalPodAutoscaler": check_autoscaler,
    "Ingress": network.check_ingress,
    "IngressClass": network.check_ingress_class,
    "NetworkPolicy": network.check_network_policy,
    "ServiceCIDR": network.check_service_range,
    "EndpointSlice": services.check_endpoint_slice,
    "IPAddress": _check_address,
    "APIService": _check_api_service,
}
