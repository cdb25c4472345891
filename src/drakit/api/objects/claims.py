"""ResourceClaim and its template: what is asked for and what was given, in the form of `resource.k8s.io/v1`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from drakit.api.objects.meta import Condition, ObjectMeta
from drakit.api.objects.wire import constant, mapping, nested, text
from drakit.base.nodeselectors import NodeSelector
from drakit.base.quantity import Quantity
from drakit.base.structs import Model
from drakit.base.taints import DeviceToleration

EXACT_COUNT = "ExactCount"
ALL = "All"


class CELDeviceSelector(Model):
    expression: str = text()


class DeviceSelector(Model):
    cel: CELDeviceSelector | None = None


class CapacityRequirements(Model):
    requests: Mapping[str, Quantity] = mapping()


class ExactDeviceRequest(Model):
    device_class_name: str = text()
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceSubRequest(Model):
    name: str = text()
    device_class_name: str = text()
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceRequest(Model):
    name: str = text()
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Model):
    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class OpaqueDeviceConfiguration(Model):
    """`parameters` is any JSON object; it is kept as plain data, key order and nulls included."""

    driver: str = text()
    parameters: Any = msgspec.field(default_factory=lambda: None)


class DeviceClaimConfiguration(Model):
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(Model):
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(Model):
    devices: DeviceClaim = nested(DeviceClaim)


class DeviceRequestAllocationResult(Model):
    """`request` is the request's name, or `request/subrequest` for an alternative of a prioritized list."""

    request: str = text()
    driver: str = text()
    pool: str = text()
    device: str = text()
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: Mapping[str, Quantity] = mapping()


class DeviceAllocationConfiguration(Model):
    source: str = text()
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(Model):
    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(Model):
    devices: DeviceAllocationResult = nested(DeviceAllocationResult)
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ResourceClaimConsumerReference(Model):
    api_group: str = ""
    resource: str = text()
    name: str = text()
    uid: str = text()


class NetworkDeviceData(Model):
    interface_name: str = ""
    ips: tuple[str, ...] = ()
    hardware_address: str = ""


class AllocatedDeviceStatus(Model):
    driver: str = text()
    pool: str = text()
    device: str = text()
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: tuple[Condition, ...] = ()
    data: Any = None
    network_data: NetworkDeviceData | None = None


class ResourceClaimStatus(Model):
    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(Model):
    kind: str = constant("ResourceClaim")
    api_version: str = constant("resource.k8s.io/v1")
    metadata: ObjectMeta = nested(ObjectMeta)
    spec: ResourceClaimSpec = nested(ResourceClaimSpec)
    status: ResourceClaimStatus = nested(ResourceClaimStatus)


class ResourceClaimTemplateSpec(Model):
    metadata: ObjectMeta = nested(ObjectMeta)
    spec: ResourceClaimSpec = nested(ResourceClaimSpec)


class ResourceClaimTemplate(Model):
    kind: str = constant("ResourceClaimTemplate")
    api_version: str = constant("resource.k8s.io/v1")
    metadata: ObjectMeta = nested(ObjectMeta)
    spec: ResourceClaimTemplateSpec = nested(ResourceClaimTemplateSpec)
