"""Which fields a write to an endpoint can change. The others keep their stored value.

A write to an object does not reach its status. A write to `/status` does not reach the spec, and for some kinds no
metadata. Nobody gets to own a field by a write that does not reach it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

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


class Reach(NamedTuple):
    """The fields that a write can change. `limit` drops the others from a set.

    `beside` are the parts of an object that the write does not reach at all. If `by_parts`, it reaches all the rest.
    """

    limit: Callable[[FieldSet], FieldSet]
    beside: tuple[str, ...] = ()
    by_parts: bool = True


@cache
def reach_of(kind: str, subresource: str = "") -> Reach:
    """What a write to this kind or subresource can reach."""
    if (kind, subresource) in _NARROW:
        reached = set_of(_NARROW[kind, subresource])
        return Reach(lambda fields: within(fields, reached), by_parts=False)
    if kind not in _BESIDE_STATUS:
        return Reach(lambda fields: fields)
    paths = _BESIDE_STATUS[kind] if subresource == "status" else _STATUS
    unreached = set_of(paths)
    parts = tuple(path[0].removeprefix("f:") for path in paths if len(path) == 1)
    return Reach(lambda fields: without(fields, unreached), parts, by_parts=len(parts) == len(paths))
