"""Which fields a write to an endpoint can change. The others keep their stored value.

A write to an object does not reach its status. A write to `/status` does not reach the spec, and for some kinds no
metadata. Nobody gets to own a field by a write that does not reach it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from drakit.apiserver.patching.fieldsets import ANY, FieldSet, set_of, within, without

_STATUS = (("f:status",),)
_SPEC = (("f:spec",),)
_ALL_BUT_STATUS = (("f:metadata",), ("f:spec",))

# Fields that a write to `/status` does not reach. Kinds that are not listed have no such subresource.
_BESIDE_STATUS = {
    "ResourceClaim": _ALL_BUT_STATUS,
    "DeviceTaintRule": _ALL_BUT_STATUS,
    "ResourcePoolStatusRequest": _ALL_BUT_STATUS,
    "PodGroup": _ALL_BUT_STATUS,
    "ValidatingAdmissionPolicy": _ALL_BUT_STATUS,
    "Pod": (*_SPEC, ("f:metadata", "f:deletionTimestamp"), ("f:metadata", "f:ownerReferences")),
    "Deployment": (*_SPEC, ("f:metadata", "f:labels")),
    "Node": _SPEC,
    "Namespace": _SPEC,
    "ResourceQuota": _SPEC,
    "Service": _SPEC,
    "ReplicaSet": _SPEC,
    "DaemonSet": _SPEC,
    **dict.fromkeys(
        (
            "Job", "CronJob", "StatefulSet", "ReplicationController", "PodDisruptionBudget", "PersistentVolume",
            "PersistentVolumeClaim", "HorizontalPodAutoscaler", "Ingress", "ServiceCIDR", "APIService",
        ),
        _SPEC,
    ),
    **dict.fromkeys(("VolumeAttachment", "FlowSchema", "PriorityLevelConfiguration"), _ALL_BUT_STATUS),
}  # fmt: skip
# Subresources that reach only a few fields.
_NARROW = {
    ("Pod", "ephemeralcontainers"): (("f:spec", "f:ephemeralContainers"),),
    ("Pod", "resize"): tuple(
        ("f:spec", containers, ANY, part)
        for containers in ("f:containers", "f:initContainers")
        for part in ("f:resources", "f:resizePolicy")
    ),
}


@cache
def reach_of(kind: str, subresource: str = "") -> Callable[[FieldSet], FieldSet]:
    """A function that drops from a set the fields that a write to this kind or subresource cannot reach."""
    if (kind, subresource) in _NARROW:
        reached = set_of(_NARROW[kind, subresource])
        return lambda fields: within(fields, reached)
    if kind not in _BESIDE_STATUS:
        return lambda fields: fields
    unreached = set_of(_BESIDE_STATUS[kind] if subresource == "status" else _STATUS)
    return lambda fields: without(fields, unreached)
