"""Fields that a write cannot touch, because the endpoint takes them from the stored object.

A write to an object leaves its status alone; a write to `/status` leaves the spec alone, and of some kinds all
metadata. Nobody comes to own a field by a write that does not reach it.
"""

from __future__ import annotations

from functools import cache

from drakit.apiserver.patching.fieldsets import FieldSet, set_of

_STATUS = (("f:status",),)
_SPEC = (("f:spec",),)
_ALL_BUT_STATUS = (("f:metadata",), ("f:spec",))

# Kinds whose spec, status or both are told apart by subresource. Others reset nothing.
_WITH_STATUS = {
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


@cache
def reset_fields(kind: str, subresource: str = "") -> FieldSet:
    """The fields that a write to this kind, or this subresource of it, does not reach. Nobody changes the set."""
    if kind not in _WITH_STATUS:
        return {}
    if subresource == "status":
        return set_of(_WITH_STATUS[kind])
    return set_of(_STATUS)
