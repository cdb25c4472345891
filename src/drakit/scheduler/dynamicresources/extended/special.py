"""The special claim: the one that the scheduler makes for the extended resources of a pod. Pure.

In:  a pod and what it asks of devices on a node.
Out: the claim, which is in memory only until a node is chosen. Owner and annotation are what tells afterwards for whom
     it was made; there is at most one per pod.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from drakit.allocator import Inventory
from drakit.allocator.inventory.counts import offers
from drakit.api import DeviceClaim, ObjectMeta, OwnerReference, Pod, ResourceClaim, ResourceClaimSpec
from drakit.api.podclaims import EXTENDED_RESOURCES
from drakit.base.wellknown import EXTENDED_RESOURCE_ANNOTATION
from drakit.scheduler.dynamicresources.extended.requests import ResourceRequests


def special_claim(pod: Pod, variant: ResourceRequests, uid: str) -> ResourceClaim:
    """As it is kept in memory: under a name that no claim can have, and a uid that it will not keep."""
    metadata = ObjectMeta(
        name=EXTENDED_RESOURCES,
        generate_name=f"{pod.metadata.name}-extended-resources-",
        namespace=pod.metadata.namespace,
        uid=uid,
        annotations={EXTENDED_RESOURCE_ANNOTATION: "true"},
        owner_references=(
            OwnerReference(api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid, controller=True),
        ),
    )
    return ResourceClaim(metadata=metadata, spec=_spec(variant))


def to_create(claim: ResourceClaim) -> ResourceClaim:
    """As it is sent to the server, which gives it a name and a uid."""
    return ResourceClaim(metadata=replace(claim.metadata, name="", uid=""), spec=claim.spec)


def is_in_memory(claim: ResourceClaim) -> bool:
    return claim.metadata.name == EXTENDED_RESOURCES


def is_special_of(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether a claim stands for the extended resources of this very pod."""
    owner = claim.metadata.controller
    if owner is None or claim.metadata.annotations.get(EXTENDED_RESOURCE_ANNOTATION) != "true":
        return False
    return (owner.kind, owner.name, owner.uid) == ("Pod", pod.metadata.name, pod.metadata.uid)


def find_special(claims: Iterable[ResourceClaim], pod: Pod) -> ResourceClaim | None:
    """The pod's special claim: the oldest, should there be several."""
    found = [each for each in claims if is_special_of(each, pod)]
    return min(found, key=lambda each: (each.metadata.creation_timestamp or "", each.metadata.name), default=None)


def is_made_for(claim: ResourceClaim, variant: ResourceRequests) -> bool:
    """Whether a claim from an earlier attempt asks for just what is asked now."""
    return claim.metadata.deletion_timestamp is None and claim.spec == _spec(variant)


def is_provided(claim: ResourceClaim, inventory: Inventory, node: str) -> bool:
    """Whether the node still has the devices that the claim was given, and these are still what it asks for.

    True of a claim without an allocation.
    """
    if claim.status.allocation is None:
        return True
    asked = {each.name: each.exactly.device_class_name for each in claim.spec.devices.requests if each.exactly}
    for result in claim.status.allocation.devices.results:
        device_class = inventory.classes.get(asked.get(result.request, ""))
        if device_class is None or not offers(inventory, device_class, node, result):
            return False
    return True


def _spec(variant: ResourceRequests) -> ResourceClaimSpec:
    return ResourceClaimSpec(devices=DeviceClaim(requests=variant.requests))
