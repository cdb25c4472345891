"""Disabled fields of pods. Pods are documents: a field goes from the document, and the view is read again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from drakit.api import Partial, Pod
from drakit.base.gates import FeatureGates

_FIELDS = (
    ("GenericWorkload", "spec", "schedulingGroup"),
    ("DRAExtendedResource", "status", "extendedResourceClaimStatus"),
    ("DRANodeAllocatableResources", "status", "nodeAllocatableResourceClaimStatuses"),
)
_STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_HEALTH = "allocatedResourcesStatus"

Drop = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def drop_pod_fields(new: Partial[Pod], old: Partial[Pod] | None, gates: FeatureGates) -> Partial[Pod]:
    fields, drops = _switched_off(gates)
    document = new.document
    before = old.document if old is not None else {}
    for part, name in fields:
        if name in _part(document, part) and not _part(before, part).get(name):
            document = {**document, part: _without(_part(document, part), name)}
    for drop in drops:
        if _each_status(before, drop) == before:
            document = _each_status(document, drop)
    return new if document is new.document or document == new.document else Partial.of(Pod, document)


@lru_cache(maxsize=16)
def _switched_off(gates: FeatureGates) -> tuple[list[tuple[str, str]], list[Drop]]:
    """The fields whose feature is off, and what to do at the status of each container."""
    fields = [(part, name) for gate, part, name in _FIELDS if not gates.enabled(gate)]
    drops: list[Drop] = [] if gates.enabled("ResourceHealthStatus") else [_drop_health]
    if not gates.enabled("ResourceHealthStatusMessage"):
        drops.append(_drop_messages)
    return fields, drops


def _part(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part: Mapping[str, Any] = document.get(name) or {}
    return part


def _without(entry: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return {key: value for key, value in entry.items() if key != name}


def _each_status(document: Mapping[str, Any], drop: Drop) -> Mapping[str, Any]:
    """The pod after `drop` was there at the status of each container."""
    status = _part(document, "status")
    changed = {name: [drop(entry) for entry in status[name]] for name in _STATUSES if status.get(name)}
    return {**document, "status": {**status, **changed}} if changed else document


def _drop_health(status: Mapping[str, Any]) -> Mapping[str, Any]:
    return _without(status, _HEALTH)


def _drop_messages(status: Mapping[str, Any]) -> Mapping[str, Any]:
    if not status.get(_HEALTH):
        return status
    return {**status, _HEALTH: [_silent(resource) for resource in status[_HEALTH]]}


def _silent(resource: Mapping[str, Any]) -> Mapping[str, Any]:
    if not resource.get("resources"):
        return resource
    return {**resource, "resources": [_without(device, "message") for device in resource["resources"]]}
