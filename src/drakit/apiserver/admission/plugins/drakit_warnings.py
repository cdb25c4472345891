"""Warnings that Kubernetes does not give: fields that were dropped, objects and fields that nobody acts on.

In:  a change that is valid; of one that will be refused, what the refusal does not say right.
Out: Warning headers. Nothing is refused. `--drakit-warnings` puts the plugin into the chain.
"""

from __future__ import annotations

from drakit.api import Pod, ResourceClaim, ResourceClaimTemplate
from drakit.api.registry import Kind
from drakit.apiserver.admission.chain import CREATE, UPDATE, AdmissionPlugin, ObjectChange
from drakit.apiserver.admission.rules import typed, typed_stored
from drakit.base.gates import FeatureGates
from drakit.validation import dropped_fields, has_warnings, warnings_about

_ASKING = (ResourceClaim, ResourceClaimTemplate)
_TOLD_WRONG = "constraint-neither"
_CHARGES = "nodeAllocatableResourceClaimStatuses"
_INERT = frozenset(
    (
        "apps/StatefulSet", "/ReplicationController", "/Service", "/PodTemplate", "autoscaling/HorizontalPodAutoscaler",
        "/PersistentVolume", "/PersistentVolumeClaim", "storage.k8s.io/StorageClass", "storage.k8s.io/CSIDriver",
        "storage.k8s.io/VolumeAttachment", "storage.k8s.io/VolumeAttributesClass", "storage.k8s.io/CSIStorageCapacity",
        "networking.k8s.io/Ingress", "networking.k8s.io/IngressClass", "networking.k8s.io/NetworkPolicy",
        "networking.k8s.io/ServiceCIDR", "networking.k8s.io/IPAddress", "flowcontrol.apiserver.k8s.io/FlowSchema",
        "flowcontrol.apiserver.k8s.io/PriorityLevelConfiguration", "apiregistration.k8s.io/APIService",
    )
)  # fmt: skip
"""Kinds that are served whole and that no part of drakit acts on. Parts of another Kubernetes may."""


class DrakitWarnings(AdmissionPlugin):
    name = "DrakitWarnings"

    def __init__(self, gates: FeatureGates) -> None:
        self._gates = gates

    def concerns(self, kind: Kind, operation: str, subresource: str) -> bool:
        """Status is written by programs: nobody reads the headers of their answers. But what pods take is looked at."""
        if subresource:
            return kind.model is Pod and subresource == "status"
        return (has_warnings(kind.model) and operation in (CREATE, UPDATE)) or (_is_inert(kind) and operation == CREATE)

    async def admit(self, change: ObjectChange) -> None:
        """Before the rules: they refuse a constraint without an attribute in words that tell of several."""
        if change.kind.model in _ASKING and not change.subresource and not change.repeated:
            found = warnings_about(typed(change.kind, change.document), None, self._gates)
            change.warnings.extend(str(each) for each in found if each.rule == _TOLD_WRONG)

    async def validate(self, change: ObjectChange) -> None:
        if _is_inert(change.kind):
            if change.operation == CREATE:
                change.warnings.append(f"{change.kind.plural} are stored, and no controller of drakit acts on them")
            return
        # Status writes come from components, which do not read warnings; what is charged to a node is the exception.
        if change.subresource and not (change.document.get("status") or {}).get(_CHARGES):
            return
        old = typed_stored(change.old) if change.old is not None else None
        new = change.typed or typed(change.kind, change.document)
        found = warnings_about(new, old, self._gates)
        if change.undropped is not None and not change.subresource:
            found = (*dropped_fields(change.undropped, old, self._gates), *found)
        change.warnings.extend(map(str, found))


def _is_inert(kind: Kind) -> bool:
    return f"{kind.group}/{kind.kind}" in _INERT
