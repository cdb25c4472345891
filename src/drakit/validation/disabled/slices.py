"""Disabled fields of slices."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from drakit.api import Device, DeviceAttribute, ResourceSlice, ResourceSliceSpec
from drakit.base.gates import FeatureGates


class _Feature(msgspec.Struct, frozen=True):
    """Gates that must all be on, and what goes from the slice and from each device when one is not."""

    gates: tuple[str, ...]
    device: Callable[[Device], Device]
    spec: Callable[[ResourceSliceSpec], ResourceSliceSpec] = lambda spec: spec

    def drop(self, spec: ResourceSliceSpec) -> ResourceSliceSpec:
        return self.spec(replace(spec, devices=tuple(map(self.device, spec.devices))))


def drop_slice_fields(new: ResourceSlice, old: ResourceSlice | None, gates: FeatureGates) -> ResourceSlice:
    spec = new.spec
    for feature in _FEATURES:
        enabled = all(map(gates.enabled, feature.gates))
        if not enabled and not (old is not None and feature.drop(old.spec) != old.spec):
            spec = feature.drop(spec)
    return new if spec == new.spec else replace(new, spec=spec)


def _without_partitions(device: Device) -> Device:
    return replace(device, consumes_counters=(), node_name=None, node_selector=None, all_nodes=None)


def _without_sharing(device: Device) -> Device:
    capacity = {name: replace(capacity, request_policy=None) for name, capacity in device.capacity.items()}
    return replace(device, allow_multiple_allocations=None, capacity=capacity)


def _without_binding(device: Device) -> Device:
    return replace(device, binding_conditions=(), binding_failure_conditions=(), binds_to_node=None)


def _without_lists(device: Device) -> Device:
    attributes = {name: _scalar(attribute) for name, attribute in device.attributes.items()}
    return replace(device, attributes=attributes)


def _scalar(attribute: DeviceAttribute) -> DeviceAttribute:
    return replace(attribute, ints=(), bools=(), strings=(), versions=())


_FEATURES = (
    _Feature(("DRADeviceTaints",), lambda device: replace(device, taints=())),
    _Feature(
        ("DRAPartitionableDevices",),
        _without_partitions,
        lambda spec: replace(spec, shared_counters=(), per_device_node_selection=None),
    ),
    _Feature(("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"), _without_binding),
    _Feature(("DRAConsumableCapacity",), _without_sharing),
    _Feature(("DRANodeAllocatableResources",), lambda device: replace(device, node_allocatable_resource_mappings={})),
    _Feature(("DRAListTypeAttributes",), _without_lists),
)
