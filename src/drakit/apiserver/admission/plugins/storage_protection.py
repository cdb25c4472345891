"""The plugin StorageObjectInUseProtection: volumes, claims and attribute classes stay while somebody uses them.

In:  PersistentVolumes, PersistentVolumeClaims and VolumeAttributesClasses that are created.
Out: the same with a finalizer, which the protection controllers of kube-controller-manager take back.

It is off by default, other than upstream: drakit has no such controllers, and the objects would never be gone.
"""

from __future__ import annotations

from drakit.api.registry import Kind
from drakit.apiserver.admission.chain import CREATE, AdmissionPlugin, ObjectChange

_FINALIZERS = {
    "PersistentVolume": "kubernetes.io/pv-protection",
    "PersistentVolumeClaim": "kubernetes.io/pvc-protection",
    "VolumeAttributesClass": "kubernetes.io/vac-protection",
}


class StorageObjectInUseProtection(AdmissionPlugin):
    name = "StorageObjectInUseProtection"
    default = False

    def concerns(self, kind: Kind, operation: str, subresource: str) -> bool:
        return kind.kind in _FINALIZERS and operation == CREATE and not subresource

    async def admit(self, change: ObjectChange) -> None:
        if change.new is None:
            return
        finalizer, metadata = _FINALIZERS[change.kind.kind], change.new["metadata"]
        if finalizer not in (metadata.get("finalizers") or ()):
            metadata["finalizers"] = [*(metadata.get("finalizers") or ()), finalizer]
