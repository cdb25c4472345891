"""The status of a pod, as far as claims and devices are in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from drakit.api import (
    Container,
    ContainerStatus,
    NodeAllocatableResourceClaimStatus,
    Partial,
    Pod,
    PodExtendedResourceClaimStatus,
    PodResourceClaimStatus,
)
from drakit.api.podclaims import container_claims
from drakit.base import names
from drakit.base.fields import FieldError, Path, duplicate, forbidden, invalid, not_supported, required, too_long
from drakit.validation.context import Context
from drakit.validation.fields.metadata import check_metadata_update, immutable
from drakit.validation.fields.names import check_label, check_subdomain, is_subdomain
from drakit.validation.pods.resourcenames import is_native

HEALTH = ("Healthy", "Unhealthy", "Unknown")
MESSAGE_LENGTH = 1024
_STATUS = Path("status")
_QUALITY = _STATUS / "qosClass"
_CLAIMS = _STATUS / "resourceClaimStatuses"
_EPHEMERAL = _STATUS / "ephemeralContainerStatuses"
_CLAIM_PREFIX = "claim:"
_NO_CLAIM = (
    "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' "
    "or 'claim:<claimName>' if request is empty"
)
_NO_CONTAINER = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
_NO_RESOURCE = (
    "must match the extended resource name of an entry in spec.initContainers.resources.requests "
    "or spec.containers.resources.requests"
)


def check_pod_status_update(new: Partial[Pod], old: Partial[Pod], _ctx: Context) -> Iterator[FieldError]:
    pod, status = new.view, new.view.status
    yield from check_metadata_update(pod.metadata, old.view.metadata)
    if status.nominated_node_name and status.nominated_node_name != old.view.status.nominated_node_name:
        yield from _check_nomination(status.nominated_node_name, old.view)
    if old.view.status.qos_class:
        yield from immutable(status.qos_class, old.view.status.qos_class, _QUALITY)
    if status.resource_claim_statuses:
        yield from _check_claims(pod, _CLAIMS)
    if status.extended_resource_claim_status is not None:
        where = _STATUS / "extendedResourceClaimStatus"
        yield from _check_extended(status.extended_resource_claim_status, pod, where)
    for index, entry in enumerate(status.node_allocatable_resource_claim_statuses):
        where = (_STATUS / "nodeAllocatableResourceClaimStatuses")[index]
        yield from _check_node_allocatable(entry, pod, where)
    if status.container_statuses:
        yield from _check_health(status.container_statuses, pod.spec.containers, _STATUS / "containerStatuses")
    if status.init_container_statuses:
        yield from _check_health(
            status.init_container_statuses, pod.spec.init_containers, _STATUS / "initContainerStatuses"
        )
    yield from _check_no_resources(new)


def _check_nomination(name: str, old: Pod) -> Iterator[FieldError]:
    """A pod that has a node needs no other."""
    path = _STATUS / "nominatedNodeName"
    yield from check_subdomain(name, path)
    if old.spec.node_name:
        yield forbidden(path, "may not be set on pods that are already bound to a node")


def _check_claims(pod: Pod, path: Path) -> Iterator[FieldError]:
    known = {claim.name for claim in pod.spec.resource_claims}
    seen: set[str] = set()
    for index, status in enumerate(pod.status.resource_claim_statuses):
        if status.name not in known or not is_subdomain(status.resource_claim_name or ""):
            yield from _check_claim(status, known, path[index])
        if status.name in seen:
            yield duplicate(path[index] / "name", status.name)
        seen.add(status.name)


def _check_claim(status: PodResourceClaimStatus, known: set[str], path: Path) -> Iterator[FieldError]:
    if status.name not in known:
        yield invalid(path / "name", status.name, "must match the name of an entry in `spec.resourceClaims`")
    if status.resource_claim_name is not None:
        yield from check_subdomain(status.resource_claim_name, path / "resourceClaimName")


def _check_extended(status: PodExtendedResourceClaimStatus, pod: Pod, path: Path) -> Iterator[FieldError]:
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    requested = {container.name: container.resources.requests for container in containers}
    mappings = path / "requestMappings"
    if not status.request_mappings:
        yield required(mappings, "at least one request mapping is required")
    seen: set[tuple[str, str, str]] = set()
    for index, mapping in enumerate(status.request_mappings):
        where = mappings[index]
        if mapping.container_name not in requested:
            yield invalid(where / "containerName", mapping.container_name, _NO_CONTAINER)
        elif mapping.resource_name not in requested[mapping.container_name]:
            yield invalid(where / "resourceName", mapping.resource_name, _NO_RESOURCE)
        yield from check_label(mapping.request_name, path / "requestName")
        key = (mapping.container_name, mapping.resource_name, mapping.request_name)
        if key in seen:
            for name, value in zip(("containerName", "resourceName", "requestName"), key, strict=True):
                yield duplicate(where / name, value)
        seen.add(key)
    if not status.resource_claim_name:
        yield required(path / "resourceClaimName")
    else:
        yield from check_subdomain(status.resource_claim_name, path / "resourceClaimName")


def _claim_names(pod: Pod) -> set[str]:
    """The claims that the pod uses, by their own names."""
    found = {claim.resource_claim_name for claim in pod.spec.resource_claims}
    found |= {status.resource_claim_name for status in pod.status.resource_claim_statuses}
    if pod.status.extended_resource_claim_status is not None:
        found.add(pod.status.extended_resource_claim_status.resource_claim_name)
    return {name for name in found if name}


def _check_node_allocatable(status: NodeAllocatableResourceClaimStatus, pod: Pod, path: Path) -> Iterator[FieldError]:
    """A claim that no container uses takes its share of the node all the same."""
    if not status.resource_claim_name:
        yield required(path / "resourceClaimName", "must not be empty")
    if status.resource_claim_name not in _claim_names(pod):
        yield invalid(path / "resourceClaimName", status.resource_claim_name, "no mapping found in pod reference")
    if not status.containers and not _is_unused(status.resource_claim_name, pod):
        yield required(path / "containers", "must not be empty")
    if not status.resources:
        yield required(path / "resources", "must not be empty")
    for name, amount in status.resources.items():
        if not is_native(name):
            yield invalid((path / "resources").key(name), name, "must be a node allocatable resource name")
        if amount.sign < 0:
            yield invalid((path / "resources").key(name), str(amount), "must be non-negative")


def _is_unused(claim: str, pod: Pod) -> bool:
    """Whether the claim is one of the pod's, and no container uses it."""
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    used = {name for container in containers for name, _ in container_claims(pod, container)}
    return claim in _claim_names(pod) - used


def _check_health(
    statuses: Sequence[ContainerStatus], containers: Sequence[Container], path: Path
) -> Iterator[FieldError]:
    by_name = {container.name: container for container in containers}
    for index, status in enumerate(statuses):
        for position, entry in enumerate(status.allocated_resources_status):
            where = (path[index] / "allocatedResourcesStatus")[position]
            yield from _check_resource_name(str(entry.get("name", "")), by_name.get(status.name), where / "name")
            yield from _check_devices(entry.get("resources") or (), where / "resources")


def _check_no_resources(pod: Partial[Pod]) -> Iterator[FieldError]:
    """Ephemeral containers get no resources."""
    statuses = (pod.document.get("status") or {}).get("ephemeralContainerStatuses") or ()
    for index, status in enumerate(statuses):
        if (status or {}).get("allocatedResourcesStatus"):
            detail = "must not be specified in container status"
            yield forbidden(_EPHEMERAL[index] / "allocatedResourcesStatus", detail)


def _check_resource_name(name: str, container: Container | None, path: Path) -> Iterator[FieldError]:
    """A claim of the container, or something that it requests. Statuses of unknown containers are not judged."""
    if container is None:
        return
    if name.startswith(_CLAIM_PREFIX):
        used = {
            f"{_CLAIM_PREFIX}{claim.name}/{claim.request}" if claim.request else _CLAIM_PREFIX + claim.name
            for claim in container.resources.claims
        }
        if name not in used:
            yield invalid(path, name, _NO_CLAIM)
    elif name not in container.resources.requests:
        yield invalid(path, name, "must match one of the container's resource requests")


def _check_devices(devices: Sequence[Mapping[str, Any]], path: Path) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, device in enumerate(devices):
        health, identity = device.get("health", ""), str(device.get("resourceID", ""))
        if health not in HEALTH:
            yield not_supported(path[index] / "health", health, HEALTH)
        yield from _check_message(device.get("message"), path[index] / "message")
        if identity in seen:
            yield duplicate(path[index] / "resourceID", identity)
        seen.add(identity)


def _check_message(message: Any, path: Path) -> Iterator[FieldError]:
    if message == "":
        yield required(path, "must be non-empty if specified")
    elif message is not None and names.size(str(message)) > MESSAGE_LENGTH:
        yield too_long(path, MESSAGE_LENGTH)
