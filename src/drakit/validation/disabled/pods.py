"""Disabled fields of pods. Pods are documents: a field goes from the document, and the view is read again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from drakit.api import Partial, Pod
from drakit.base.gates import FeatureGates

Plain = Mapping[str, Any]

_FIELDS = (
    ("GenericWorkload", "spec", "schedulingGroup"),
    ("DRAExtendedResource", "status", "extendedResourceClaimStatus"),
    ("DRANodeAllocatableResources", "status", "nodeAllocatableResourceClaimStatuses"),
)
_STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_HEALTH = "allocatedResourcesStatus"

Drop = Callable[[Plain], Plain]


def drop_pod_fields(new: Partial[Pod], old: Partial[Pod] | None, gates: FeatureGates) -> Partial[Pod]:
    document = new.document
    before = old.document if old is not None else {}
    for gate, part, name in _FIELDS:
        if not gates.enabled(gate) and not _part(before, part).get(name) and name in _part(document, part):
            document = {**document, part: _without(_part(document, part), name)}
    for gate, drop in (("ResourceHealthStatus", _drop_health), ("ResourceHealthStatusMessage", _drop_messages)):
        if not gates.enabled(gate) and _each_status(before, drop) == before:
            document = _each_status(document, drop)
    return new if document == new.document else Partial.of(Pod, document)


def _part(document: Plain, name: str) -> Plain:
    part: Plain = document.get(name) or {}
    return part


def _without(entry: Plain, name: str) -> Plain:
    return {key: value for key, value in entry.items() if key != name}


def _each_status(document: Plain, drop: Drop) -> Plain:
    """The pod after `drop` was there at the status of each container."""
    status = _part(document, "status")
    changed = {name: [drop(entry) for entry in status[name]] for name in _STATUSES if status.get(name)}
    return {**document, "status": {**status, **changed}} if changed else document


def _drop_health(status: Plain) -> Plain:
    return _without(status, _HEALTH)


def _drop_messages(status: Plain) -> Plain:
    if not status.get(_HEALTH):
        return status
    return {**status, _HEALTH: [_silent(resource) for resource in status[_HEALTH]]}


def _silent(resource: Plain) -> Plain:
    if not resource.get("resources"):
        return resource
    return {**resource, "resources": [_without(device, "message") for device in resource["resources"]]}
