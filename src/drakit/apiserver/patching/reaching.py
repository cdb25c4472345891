"""Which fields a write can reach; the endpoint takes the others from the stored object.

A write to an object leaves its status alone; a write to `/status` leaves the spec alone, and of some kinds all
metadata. Nobody comes to own a field by a write that does not reach it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from drakit.apiserver.patching.fieldsets import ANY, FieldSet, set_of, within, without

_STATUS = (("f:status",),)
_SPEC = (("f:spec",),)
_ALL_BUT_STATUS = (("f:metadata",), ("f:spec",))

# What a write to the status of these kinds does not reach. Other kinds have no status of their own.
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
}
# Subresources that reach a few fields only.
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
    """A function that leaves of a set the fields that a write to this kind, or subresource, can reach."""
    if (kind, subresource) in _NARROW:
        reached = set_of(_NARROW[kind, subresource])
        return lambda fields: within(fields, reached)
    if kind not in _BESIDE_STATUS:
        return lambda fields: fields
    unreached = set_of(_BESIDE_STATUS[kind] if subresource == "status" else _STATUS)
    return lambda fields: without(fields, unreached)
