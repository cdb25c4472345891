"""Objects for other people's eyes: without secrets, and on request without names. Pure.

In:  documents of a cluster.
Out: the same for every decision: resources, claims, selectors and counts stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Document = Mapping[str, Any]
_SECRET = ("env", "envFrom", "command", "args", "volumeMounts", "volumes", "imagePullSecrets", "lifecycle")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_DROPPED = {*_SECRET, *_PROBES, "managedFields", "parameters"}
"""Fields that may hold secrets or tokens. No decision of the scheduler depends on them."""
_KEPT_ANNOTATIONS = ("resource.kubernetes.io/",)
_NAMED = {
    "Node": "node", "Pod": "pod", "ResourceClaim": "claim", "ResourceClaimTemplate": "template",
    "ResourceSlice": "slice", "PodGroup": "group", "DeviceTaintRule": "rule",
}  # fmt: skip
_PUBLIC = ("kind", "apiVersion", "driver", "expression", "attributes", "resource", "phase", "reason")
"""Fields whose values are never names of somebody's objects."""


def without_secrets(document: Document) -> dict[str, Any]:
    """Also without annotations of others, which hold whole objects as they were applied."""
    kept: dict[str, Any] = _stripped(document)
    annotations = (kept.get("metadata") or {}).get("annotations")
    if annotations:
        mine = {key: value for key, value in annotations.items() if key.startswith(_KEPT_ANNOTATIONS)}
        kept["metadata"] = {**kept["metadata"], "annotations": mine}
    return kept


def _stripped(value: Any) -> Any:
    if isinstance(value, Mapping):
        # An opaque configuration needs parameters to be valid; which ones is the driver's business.
        return {
            key: {} if key == "parameters" else _stripped(each)
            for key, each in value.items()
            if key == "parameters" or key not in _DROPPED
        }
    return [_stripped(each) for each in value] if isinstance(value, list | tuple) else value


class NameMask:
    """The same name is masked in the same way wherever it stands, so that references still lead somewhere."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._names: dict[str, str] = {}
        for each in documents:
            metadata = each.get("metadata") or {}
            self._learn(metadata.get("namespace"), "namespace")
            if each.get("kind") in _NAMED:
                self._learn(metadata.get("name"), _NAMED[each["kind"]])
            if each.get("kind") == "ResourceSlice":
                self._learn(((each.get("spec") or {}).get("pool") or {}).get("name"), "pool")

    def _learn(self, name: Any, what: str) -> None:
        # The first kind that has the name decides: a pool is mostly named after its node, and stays equal to it.
        if isinstance(name, str) and name and name not in self._names:
            self._names[name] = f"{what}-{len(self._names) + 1}"

    def apply(self, document: Document) -> dict[str, Any]:
        masked: dict[str, Any] = self._masked(document)
        if document.get("kind") == "Pod":
            # Labels and messages of conditions are free text, in which names may stand.
            masked["metadata"] = _less(masked["metadata"], "labels")
            masked["status"] = _less(masked.get("status") or {}, "conditions")
        return masked

    def _masked(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            # A generated name begins with that of whoever it was made for.
            shown = {key: each for key, each in value.items() if key != "generateName"}
            return {key: each if key in _PUBLIC else self._value(key, each) for key, each in shown.items()}
        if isinstance(value, list | tuple):
            return [self._masked(each) for each in value]
        return self._names.get(value, value) if isinstance(value, str) else value

    def _value(self, key: str, value: Any) -> Any:
        return "masked" if key == "image" else self._masked(value)


def _less(found: Mapping[str, Any], *dropped: str) -> dict[str, Any]:
    return {key: value for key, value in found.items() if key not in dropped}
