"""Claims with an allocation, as a scheduler would have written it, for devices that the driver published.

In:  slices; which device, and what else the claim shall hold.
Out: a claim of one request. It is reserved for a consumer that no controller knows, so that none takes it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

import msgspec

from drakit.api import (
    AllocationResult,
    Device,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceClaim,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSubRequest,
    ExactDeviceRequest,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
    OpaqueDeviceConfiguration,
    Quantity,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourceSlice,
)
from drakit.base.nodeselectors import IN, NAME_FIELD, matches

CLASS = "drakit-conformance"
REQUEST = "device"
SUBREQUEST = "choice"
_CONSUMER = ResourceClaimConsumerReference(
    api_group="conformance.drakit.dev", resource="runs", name="drakit-conformance", uid=str(uuid4())
)
_BLOCKING = ("NoSchedule", "NoExecute")


class PublishedDevice(msgspec.Struct, frozen=True):
    """A device with the slice that it is in."""

    slice: ResourceSlice
    device: Device

    @property
    def pool(self) -> str:
        return self.slice.spec.pool.name

    @property
    def node_selector(self) -> NodeSelector | None:
        """Which nodes reach it, where the slice or the device says so by labels."""
        spec = self.slice.spec
        return self.device.node_selector if spec.per_device_node_selection else spec.node_selector

    def is_reached_from(self, name: str, labels: Mapping[str, str]) -> bool:
        only = self.device.node_name if self.slice.spec.per_device_node_selection else self.slice.spec.node_name
        if only:
            return only == name
        return self.node_selector is None or matches(self.node_selector, name=name, labels=labels)

    @property
    def tainted(self) -> bool:
        return any(taint.effect in _BLOCKING for taint in self.device.taints)


def published_devices(slices: Iterable[ResourceSlice]) -> Iterator[PublishedDevice]:
    """In the order of their slices' names, those that a scheduler would avoid last."""
    ordered = sorted(slices, key=lambda each: each.metadata.name)
    found = [PublishedDevice(each, device) for each in ordered for device in each.spec.devices]
    # A stable sort: within each half the order of the slices stays.
    yield from sorted(found, key=lambda each: each.tainted)


def claim_for(name: str, namespace: str) -> ResourceClaim:
    """A claim that asks for one device."""
    exactly = ExactDeviceRequest(device_class_name=CLASS, allocation_mode="ExactCount", count=1)
    return _claim(name, namespace, DeviceRequest(name=REQUEST, exactly=exactly))


def claim_with_choice(name: str, namespace: str) -> ResourceClaim:
    """A claim with a prioritized list: its result is called `request/subrequest`."""
    choice = DeviceSubRequest(name=SUBREQUEST, device_class_name=CLASS, allocation_mode="ExactCount", count=1)
    return _claim(name, namespace, DeviceRequest(name=REQUEST, first_available=(choice,)))


def _claim(name: str, namespace: str, request: DeviceRequest) -> ResourceClaim:
    metadata = ObjectMeta(name=name, namespace=namespace)
    return ResourceClaim(metadata=metadata, spec=ResourceClaimSpec(devices=DeviceClaim(requests=(request,))))


def allocated(
    claim: ResourceClaim,
    chosen: PublishedDevice,
    *,
    driver: str,
    node_name: str,
    parameters: Any = None,
    others: Sequence[DeviceRequestAllocationResult] = (),
) -> ResourceClaim:
    """The claim with that device given to it; `others` are results of other drivers."""
    results = (result_for(chosen, driver=driver, request=_result_name(claim)), *others)
    config: tuple[DeviceAllocationConfiguration, ...] = ()
    if parameters is not None:
        opaque = OpaqueDeviceConfiguration(driver=driver, parameters=parameters)
        config = (DeviceAllocationConfiguration(source="FromClaim", opaque=opaque),)
    allocation = AllocationResult(
        devices=DeviceAllocationResult(results=results, config=config),
        node_selector=_nodes(chosen, node_name),
    )
    status = ResourceClaimStatus(allocation=allocation, reserved_for=(_CONSUMER,))
    return msgspec.structs.replace(claim, status=status)


def _result_name(claim: ResourceClaim) -> str:
    request = claim.spec.devices.requests[0]
    return f"{request.name}/{request.first_available[0].name}" if request.first_available else request.name


def result_for(chosen: PublishedDevice, *, driver: str, request: str = REQUEST) -> DeviceRequestAllocationResult:
    device = chosen.device
    shared = bool(device.allow_multiple_allocations)
    return DeviceRequestAllocationResult(
        request=request,
        driver=driver,
        pool=chosen.pool,
        device=device.name,
        binding_conditions=device.binding_conditions,
        binding_failure_conditions=device.binding_failure_conditions,
        share_id=str(uuid4()) if shared else None,
        consumed_capacity=consumed(device) if shared else {},
    )


def consumed(device: Device) -> dict[str, Quantity]:
    """What a request that names no amount takes: the policy's default, or all that there is."""
    found = {}
    for name, capacity in device.capacity.items():
        policy = capacity.request_policy
        found[name] = policy.default if policy is not None and policy.default is not None else capacity.value
    return found


def _nodes(chosen: PublishedDevice, node_name: str) -> NodeSelector | None:
    """Where pods can use the device from now on: as a scheduler would write it."""
    is_everywhere = chosen.slice.spec.all_nodes or chosen.device.all_nodes
    if is_everywhere and not chosen.device.binds_to_node:
        return None
    if chosen.node_selector is not None and not chosen.device.binds_to_node:
        return chosen.node_selector
    name = NodeSelectorRequirement(key=NAME_FIELD, operator=IN, values=(node_name,))
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(name,)),))
