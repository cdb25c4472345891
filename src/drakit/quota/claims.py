"""What a ResourceClaim counts: itself, and the devices that it may get, by class and by extended resource.

A claim counts what it may cost at worst: `All` as the most devices that a claim can have, a prioritized list as, per
class, its largest alternative. The class's extended resource names count too, so that no way of asking for a device
evades a quota on another; a quota on these names is about claims only if the class has a name of its own. A claim that
the scheduler made for a pod's extended resources counts against a name only what the pod itself does not count there
already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from drakit.api import ALL, DeviceClass, DeviceRequest, DeviceSubRequest, ExactDeviceRequest, Pod, ResourceClaim
from drakit.api.footprint import pod_requests
from drakit.base.quantity import Quantity
from drakit.base.wellknown import EXTENDED_RESOURCE_ANNOTATION, IMPLICIT_RESOURCE_PREFIX

MAX_DEVICES = 32
DEVICES_SUFFIX = ".deviceclass.resource.k8s.io/devices"
REQUESTS_PREFIX = "requests."
"""Begins the names of quotas on what pods request."""

ClassLookup = Callable[[str], DeviceClass | None]


def claim_usage(claim: ResourceClaim, classes: ClassLookup, owner: Pod | None = None) -> dict[str, Quantity]:
    """Amounts by quota name; `owner` is the pod for whose extended resources the claim was made, if it was."""
    counted: Counter[str] = Counter()
    already = pod_requests(owner, claims=False) if owner else {}
    for class_name, devices in devices_by_class(claim).items():
        counted[class_name + DEVICES_SUFFIX] += devices
        for name in extended_names(class_name, classes(class_name)):
            # The pod counts its own extended resources: only what the claim takes beyond that is counted here.
            counted[REQUESTS_PREFIX + name] += max(devices - _amount_of(already, name), 0)
    return {name: Quantity.of(amount) for name, amount in counted.items() if amount}


def devices_by_class(claim: ResourceClaim) -> Counter[str]:
    """The most devices of each class that the claim can get."""
    total: Counter[str] = Counter()
    for request in claim.spec.devices.requests:
        total.update(_worst_case(request))
    return total


def class_names(claim: ResourceClaim) -> set[str]:
    """Every class that the claim mentions."""
    return {
        each.device_class_name
        for request in claim.spec.devices.requests
        for each in ((request.exactly,) if request.exactly else request.first_available)
    }


def extended_names(class_name: str, device_class: DeviceClass | None) -> list[str]:
    """The names by which a pod can ask for a device of the class without a claim."""
    explicit = device_class.spec.extended_resource_name if device_class else ""
    implicit = IMPLICIT_RESOURCE_PREFIX + class_name
    return [explicit, implicit] if explicit else [implicit]


def owner_name(claim: ResourceClaim) -> tuple[str, str]:
    """Name and uid of the pod for whose extended resources the claim says that it was made; empty for other claims."""
    owner = claim.metadata.controller
    if claim.metadata.annotations.get(EXTENDED_RESOURCE_ANNOTATION) != "true" or owner is None:
        return "", ""
    return (owner.name, owner.uid) if (owner.api_version, owner.kind) == ("v1", "Pod") else ("", "")


def _worst_case(request: DeviceRequest) -> Counter[str]:
    worst: Counter[str] = Counter()
    for alternative in (request.exactly,) if request.exactly else request.first_available:
        name = alternative.device_class_name
        # Only one alternative is allocated in the end: per class the largest counts, not the sum.
        worst[name] = max(worst[name], _count(alternative))
    return worst


def _count(request: ExactDeviceRequest | DeviceSubRequest) -> int:
    if request.allocation_mode == ALL:
        return MAX_DEVICES
    return request.count or 1


def _amount_of(amounts: Mapping[str, Quantity], name: str) -> int:
    return amounts[name].value if name in amounts else 0
