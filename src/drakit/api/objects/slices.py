"""ResourceSlice: the devices that a driver publishes, in the form of `resource.k8s.io/v1`."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from drakit.api.objects.meta import ObjectMeta
from drakit.api.objects.wire import constant, mapping, nested, nothing, number, text, zero
from drakit.base.nodeselectors import NodeSelector
from drakit.base.quantity import Quantity
from drakit.base.structs import Model
from drakit.base.taints import DeviceTaint


class Counter(Model):
    value: Quantity = zero()


class CounterSet(Model):
    name: str = text()
    counters: Mapping[str, Counter] = mapping()


class DeviceCounterConsumption(Model):
    counter_set: str = text()
    counters: Mapping[str, Counter] = mapping()


class DeviceAttribute(Model):
    """Exactly one of the fields is set."""

    int_: int | None = msgspec.field(default=None, name="int")
    bool_: bool | None = msgspec.field(default=None, name="bool")
    string: str | None = None
    version: str | None = None
    ints: tuple[int, ...] = ()
    bools: tuple[bool, ...] = ()
    strings: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()


class CapacityRequestPolicyRange(Model):
    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(Model):
    default: Quantity | None = nothing()
    valid_values: tuple[Quantity, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(Model):
    value: Quantity = zero()
    request_policy: CapacityRequestPolicy | None = None


class NodeAllocatableResourceMapping(Model):
    capacity_key: str | None = None
    allocation_multiplier: Quantity | None = None


class Device(Model):
    name: str = text()
    attributes: Mapping[str, DeviceAttribute] = mapping()
    capacity: Mapping[str, DeviceCapacity] = mapping()
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None
    node_allocatable_resource_mappings: Mapping[str, NodeAllocatableResourceMapping] = mapping()


class ResourcePool(Model):
    name: str = text()
    generation: int = number()
    resource_slice_count: int = number()


class ResourceSliceSpec(Model):
    driver: str = text()
    pool: ResourcePool = nested(ResourcePool)
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    devices: tuple[Device, ...] = ()
    per_device_node_selection: bool | None = None
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(Model):
    kind: str = constant("ResourceSlice")
    api_version: str = constant("resource.k8s.io/v1")
    metadata: ObjectMeta = nested(ObjectMeta)
    spec: ResourceSliceSpec = nested(ResourceSliceSpec)
