"""Disabled fields of pods. Pods are documents: a field goes from the document, and the view is read again."""

from __future__ import annotations

from collections.abc import Mapping
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


def drop_pod_fields(new: Partial[Pod], old: Partial[Pod] | None, gates: FeatureGates) -> Partial[Pod]:
    document = new.document
    before = old.document if old is not None else {}
    for gate, part, name in _FIELDS:
        if not gates.enabled(gate) and not _part(before, part).get(name) and name in _part(document, part):
            kept = {key: value for key, value in _part(document, part).items() if key != name}
            document = {**document, part: kept}
    if not gates.enabled("ResourceHealthStatus") and not _reports_health(before):
        document = _without_health(document)
    return new if document is new.document else Partial.of(Pod, document)


def _part(document: Plain, name: str) -> Plain:
    part: Plain = document.get(name) or {}
    return part


def _reports_health(document: Plain) -> bool:
    status = _part(document, "status")
    return any(entry.get(_HEALTH) for name in _STATUSES for entry in status.get(name) or ())


def _without_health(document: Plain) -> Plain:
    if not _reports_health(document):
        return document
    status = dict(_part(document, "status"))
    for name in _STATUSES:
        if name in status:
            status[name] = [
                {key: value for key, value in entry.items() if key != _HEALTH} for entry in status[name] or ()
            ]
    return {**document, "status": status}
