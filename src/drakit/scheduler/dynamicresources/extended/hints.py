"""Whether something that happened can help a pod that asks for extended resources. Pure.

In:  a pod that was refused, and an object before and after.
Out: yes or no. These add to what is said of the pod's own claims.
"""

from __future__ import annotations

from drakit.api import DeviceClass, Node, Pod, ResourceClaim
from drakit.base.wellknown import IMPLICIT_RESOURCE_PREFIX
from drakit.scheduler.dynamicresources.extended.backing import is_extended
from drakit.scheduler.dynamicresources.extended.special import is_special_of
from drakit.scheduler.framework.footprints import Footprint, footprint_of

GATE = "DRAExtendedResource"


_ASKED: dict[Footprint, tuple[str, ...]] = {}
_MOST = 4096


def asked_of(pod: Pod) -> tuple[str, ...]:
    """The extended resources of which a container of the pod asks for more than nothing."""
    footprint = footprint_of(pod)
    found = _ASKED.get(footprint)
    if found is None:
        if len(_ASKED) >= _MOST:
            _ASKED.clear()
        found = _ASKED[footprint] = _work_out(pod)
    return found


def _work_out(pod: Pod) -> tuple[str, ...]:
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    asked = (each.resources.requests.items() for each in containers)
    return tuple(sorted({name for each in asked for name, amount in each if amount and is_extended(name)}))


def class_helps(pod: Pod, old: DeviceClass | None, new: DeviceClass | None) -> bool:
    """A class that came, went or changed: does that concern a resource that the pod asks for?

    One that goes, or lets go of its name, leaves the resource to an older class, with other devices.
    """
    if old is not None and new is not None and old.spec == new.spec:
        return False
    asked = asked_of(pod)
    return any(name in asked for each in (old, new) if each is not None for name in _names(each))


def node_helps(pod: Pod, old: Node | None, new: Node) -> bool:
    """A node whose resources changed: a device plugin that came or went decides who is asked for them."""
    before = old.status.allocatable if old is not None else {}
    return any(before.get(name) != new.status.allocatable.get(name) for name in asked_of(pod))


def claim_helps(pod: Pod, old: ResourceClaim | None, new: ResourceClaim | None) -> bool:
    """The pod's claim of an earlier attempt is gone: the next attempt can make another one."""
    return new is None and old is not None and is_special_of(old, pod)


def _names(each: DeviceClass) -> tuple[str, ...]:
    return IMPLICIT_RESOURCE_PREFIX + each.metadata.name, each.spec.extended_resource_name or ""
