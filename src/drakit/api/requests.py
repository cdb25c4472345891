"""Requests of a claim by name, and what was allocated for them.

A reference is `request`, or `request/subrequest` for an alternative of a prioritized list. A reference to the request
means whichever alternative was chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from drakit.api.objects.claims import (
    DeviceAllocationConfiguration,
    DeviceClaim,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimConsumerReference,
)


def is_allocated(claim: ResourceClaim) -> bool:
    return claim.status.allocation is not None


def is_reserved_for(claim: ResourceClaim, uid: str) -> bool:
    """Whether the object of that uid is among those that the claim is reserved for."""
    return any(each.uid == uid for each in claim.status.reserved_for)


def reservation(claim: ResourceClaim, uid: str) -> ResourceClaimConsumerReference | None:
    return next((each for each in claim.status.reserved_for if each.uid == uid), None)


def sub_request_name(request: str, sub_request: str) -> str:
    return f"{request}/{sub_request}"


def base_request_name(reference: str) -> str:
    """The request that a reference belongs to."""
    return reference.partition("/")[0]


def named_requests(devices: DeviceClaim) -> Iterator[tuple[str, DeviceRequest | DeviceSubRequest]]:
    """Every request and every alternative with the name that references use."""
    for request in devices.requests:
        yield request.name, request
        for alternative in request.first_available:
            yield sub_request_name(request.name, alternative.name), alternative


def find_request(devices: DeviceClaim, reference: str) -> ExactDeviceRequest | DeviceSubRequest | None:
    """What is asked for under that name: an exact request or an alternative; None for a list of alternatives."""
    for name, found in named_requests(devices):
        if name == reference:
            return found.exactly if isinstance(found, DeviceRequest) else found
    return None


def covers(references: Iterable[str], request: str) -> bool:
    """Whether references (of a config or constraint; none means all) include what was allocated as `request`."""
    names = tuple(references)
    return not names or request in names or base_request_name(request) in names


def results_of(claim: ResourceClaim) -> tuple[DeviceRequestAllocationResult, ...]:
    """Allocated devices in order; none while nothing is allocated."""
    allocation = claim.status.allocation
    return allocation.devices.results if allocation else ()


def devices_for(claim: ResourceClaim, request: str = "") -> tuple[DeviceRequestAllocationResult, ...]:
    """What a container gets that names this claim and, if not empty, this request (or alternative) of it."""
    wanted = (request,) if request else ()
    return tuple(result for result in results_of(claim) if covers(wanted, result.request))


def configs_for(
    claim: ResourceClaim, result: DeviceRequestAllocationResult
) -> tuple[DeviceAllocationConfiguration, ...]:
    """The opaque configurations that apply to one allocated device and its driver, in order: later ones win."""
    allocation = claim.status.allocation
    return tuple(
        config
        for config in (allocation.devices.config if allocation else ())
        if config.opaque and config.opaque.driver == result.driver and covers(config.requests, result.request)
    )
