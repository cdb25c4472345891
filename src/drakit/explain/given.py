"""The devices that claims have, and how they got them. Pure.

In:  a cluster, claims with allocations.
Out: a row per device, with a sentence on why it was this one.
"""

from __future__ import annotations

from collections.abc import Iterator

from drakit.api import DeviceRequest, DeviceRequestAllocationResult, ResourceClaim
from drakit.api.requests import sub_request_name
from drakit.base.wellknown import EXTENDED_RESOURCE_ANNOTATION
from drakit.explain.answers import GivenDevice


def given_devices(claim: ResourceClaim) -> Iterator[GivenDevice]:
    allocation = claim.status.allocation
    for each in allocation.devices.results if allocation is not None else ():
        device_class, why = _why(claim, each)
        yield GivenDevice(
            claim=claim.metadata.name,
            request=each.request,
            device=f"{each.driver}/{each.pool}/{each.device}",
            device_class=device_class,
            consumed={name: str(amount) for name, amount in each.consumed_capacity.items()},
            admin=bool(each.admin_access),
            conditions=tuple(_unmet(claim, each)),
            why=why,
        )


def _unmet(claim: ResourceClaim, given: DeviceRequestAllocationResult) -> Iterator[str]:
    """Binding conditions that the device does not report as true."""
    reported = {
        condition.type
        for each in claim.status.devices
        if (each.driver, each.pool, each.device) == (given.driver, given.pool, given.device)
        for condition in each.conditions
        if condition.status == "True"
    }
    yield from (each for each in given.binding_conditions if each not in reported)


def _why(claim: ResourceClaim, given: DeviceRequestAllocationResult) -> tuple[str, str]:
    name, _, chosen = given.request.partition("/")
    request = next((each for each in claim.spec.devices.requests if each.name == name), None)
    if request is None:
        return "", ""
    if request.exactly is not None:
        asked, parts = request.exactly, []
    else:
        position = _position(request, given.request)
        asked = request.first_available[position]  # type: ignore[assignment]
        parts = [f"alternative {chosen}, number {position + 1} of {len(request.first_available)}"]
    if claim.metadata.annotations.get(EXTENDED_RESOURCE_ANNOTATION) == "true":
        parts.append("for an extended resource that the class provides")
    parts.append(f"matches class {asked.device_class_name}")
    if asked.selectors:
        parts.append(f"and {len(asked.selectors)} selector{'s' * (len(asked.selectors) != 1)} of the request")
    if given.tolerations:
        parts.append(f"tolerates {', '.join(each.key or 'any taint' for each in given.tolerations)}")
    if given.share_id:
        parts.append("a share of it, beside those of others")
    constraints = [
        each.match_attribute or each.distinct_attribute or ""
        for each in claim.spec.devices.constraints
        if not each.requests or name in each.requests or given.request in each.requests
    ]
    if constraints:
        parts.append(f"in keeping with the constraints on {', '.join(constraints)}")
    return asked.device_class_name, ", ".join(parts)


def _position(request: DeviceRequest, chosen: str) -> int:
    names = [sub_request_name(request.name, each.name) for each in request.first_available]
    return names.index(chosen) if chosen in names else 0
