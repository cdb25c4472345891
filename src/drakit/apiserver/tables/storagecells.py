"""The cells of volumes, storage and runtime classes, and certificates."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from drakit.api.objects.plain import Plain
from drakit.apiserver.tables.ages import age, human_duration
from drakit.apiserver.tables.parts import NONE, UNSET, Cells, named, spec_of, status_of

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_DEFAULT_CLASS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


def _metadata(item: Plain) -> Plain:
    found: Plain = item.get("metadata") or {}
    return found


def _access(modes: Any) -> str:
    return ",".join(short for mode, short in _MODES.items() if mode in (modes or ()))


def _phase(item: Plain) -> str:
    return "Terminating" if _metadata(item).get("deletionTimestamp") else str(status_of(item).get("phase", ""))


def _class_of(item: Plain) -> str:
    old = (_metadata(item).get("annotations") or {}).get(_CLASS_ANNOTATION)
    return str(old if old is not None else spec_of(item).get("storageClassName") or "")


def _volume(item: Plain, _now: datetime) -> list[Any]:
    spec = spec_of(item)
    claim = spec.get("claimRef")
    bound = f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""
    capacity = (spec.get("capacity") or {}).get("storage", "0")
    attributes = spec.get("volumeAttributesClassName")
    return [
        capacity, _access(spec.get("accessModes")), spec.get("persistentVolumeReclaimPolicy", ""), _phase(item), bound,
        _class_of(item), UNSET if attributes is None else attributes, status_of(item).get("reason", ""),
    ]  # fmt: skip


def _volume_claim(item: Plain, _now: datetime) -> list[Any]:
    spec, status = spec_of(item), status_of(item)
    volume, attributes = spec.get("volumeName", ""), spec.get("volumeAttributesClassName")
    capacity = (status.get("capacity") or {}).get("storage", "0") if volume else ""
    modes = _access(status.get("accessModes")) if volume else ""
    return [_phase(item), volume, capacity, modes, _class_of(item), UNSET if attributes is None else attributes]


def _mode(item: Plain, _now: datetime) -> list[Any]:
    return [spec_of(item).get("volumeMode") or UNSET]


def _storage_class(item: Plain, now: datetime) -> list[Any]:
    metadata = _metadata(item)
    notes = metadata.get("annotations") or {}
    default = " (default)" if any(notes.get(name) == "true" for name in _DEFAULT_CLASS) else ""
    return [
        metadata.get("name", "") + default, item.get("provisioner", ""), item.get("reclaimPolicy") or "Delete",
        item.get("volumeBindingMode") or "Immediate", bool(item.get("allowVolumeExpansion")),
        age(metadata.get("creationTimestamp"), now),
    ]  # fmt: skip


def _attachment(item: Plain, _now: datetime) -> list[Any]:
    spec = spec_of(item)
    volume = (spec.get("source") or {}).get("persistentVolumeName") or ""
    return [spec.get("attacher", ""), volume, spec.get("nodeName", ""), bool(status_of(item).get("attached"))]


def _csi_driver(item: Plain, _now: datetime) -> list[Any]:
    spec = spec_of(item)
    tokens = spec.get("tokenRequests")
    audiences = UNSET if tokens is None else ",".join(each.get("audience", "") for each in tokens)
    return [
        spec.get("attachRequired", True), bool(spec.get("podInfoOnMount")), bool(spec.get("storageCapacity")),
        audiences, bool(spec.get("requiresRepublish")), ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
    ]  # fmt: skip


def _signing_request(item: Plain, now: datetime) -> list[Any]:
    metadata, spec = _metadata(item), spec_of(item)
    seconds = spec.get("expirationSeconds")
    return [
        metadata.get("name", ""), age(metadata.get("creationTimestamp"), now), spec.get("signerName") or NONE,
        spec.get("username", ""), NONE if seconds is None else human_duration(seconds), _signing_state(item),
    ]  # fmt: skip


def _signing_state(item: Plain) -> str:
    status = status_of(item)
    held = {each.get("type") for each in status.get("conditions") or ()}
    state = "Denied" if "Denied" in held else "Approved" if "Approved" in held else "Pending"
    return state + (",Failed" if "Failed" in held else "") + (",Issued" if status.get("certificate") else "")


STORAGE_CELLS: Mapping[str, Cells] = {
    "CSIDriver": named(_csi_driver),
    "CSINode": named(lambda item, _: [len(spec_of(item).get("drivers") or ())]),
    "CertificateSigningRequest": _signing_request,
    "PersistentVolume": named(_volume, wide=_mode),
    "PersistentVolumeClaim": named(_volume_claim, wide=_mode),
    "RuntimeClass": named(lambda item, _: [item.get("handler", "")]),
    "StorageClass": _storage_class,
    "VolumeAttachment": named(_attachment),
    "VolumeAttributesClass": named(lambda item, _: [item.get("driverName", "")]),
}
