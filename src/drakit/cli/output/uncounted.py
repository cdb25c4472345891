"""What `drakit allocate` leaves out, where the files have it: the scheduler's part, which `drakit explain pod` plays.

In:  the objects of the files, and an allocation.
Out: lines for people: pods that ask for devices by an extended resource, devices that take something of their node.
"""

from __future__ import annotations

from collections.abc import Iterator

from drakit.allocator import Allocated
from drakit.api import DeviceClass, Pod, ResourceSlice
from drakit.api.footprint import container_requests
from drakit.base.wellknown import IMPLICIT_RESOURCE_PREFIX
from drakit.manifests import Manifests

_WHERE = "the scheduler's part is told by drakit explain pod"


def uncounted_pods(manifests: Manifests) -> Iterator[str]:
    """Pods without a node that ask for an extended resource which a class of the files gives."""
    classes = manifests.of(DeviceClass)
    names = {each.spec.extended_resource_name: each.metadata.name for each in classes}
    names |= {f"{IMPLICIT_RESOURCE_PREFIX}{each.metadata.name}": each.metadata.name for each in classes}
    for pod in manifests.of(Pod):
        for resource in container_requests(pod) if not pod.spec.node_name else ():
            if resource in names:
                asked = f"pod {pod.metadata.name} asks for {resource} of class {names[resource]}"
                yield f"note: {asked}, which is not allocated here: {_WHERE} {pod.metadata.name} -f"


def uncounted_amounts(manifests: Manifests, found: Allocated) -> Iterator[str]:
    """Allocated devices that take cpu, memory and so on of their node."""
    taking = {
        (each.spec.driver, each.spec.pool.name, device.name): ", ".join(device.node_allocatable_resource_mappings)
        for each in manifests.of(ResourceSlice)
        for device in each.spec.devices
        if device.node_allocatable_resource_mappings
    }
    for result in (result for allocation in found.allocations for result in allocation.devices.results):
        resources = taking.get((result.driver, result.pool, result.device))
        if resources is not None:
            told = f"device {result.device} takes {resources} of {found.node}"
            yield f"note: {told}, and what the node has left is not counted here: {_WHERE} NAME -f"
