"""Devices of a slice: attributes, capacity, counters, taints, nodes.

In:  a device, the device of that name before, and whether the slice selects nodes per device.
Out: errors under the device's path. A device that has not changed is not looked at again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from drakit.api import (
    Counter,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
    NodeAllocatableResourceMapping,
)
from drakit.base import names
from drakit.base.fields import FieldError, Path, invalid, not_found, required, too_long
from drakit.validation.context import Context
from drakit.validation.fields.gonames import as_go, set_fields
from drakit.validation.fields.names import (
    QUALIFIED_LENGTH,
    check_label,
    check_qualified,
    check_subdomain,
    is_qualified,
)
from drakit.validation.fields.nodeselectors import check_node_selector
from drakit.validation.fields.sequences import cut, each, each_entry, each_once
from drakit.validation.pods.resourcenames import is_native
from drakit.validation.resource.bindingconditions import check_binding_conditions
from drakit.validation.resource.policies import check_capacity
from drakit.validation.resource.taints import check_taint

ATTRIBUTES_AND_CAPACITIES = 32
ATTRIBUTE_VALUES = 48
VALUE_LENGTH = 64
TAINTS = 16
CONSUMPTIONS = 2
COUNTERS = 32
COUNTER_NAME_LENGTH = 63
_NUMBER = r"(0|[1-9][0-9]*)"
_PRERELEASE = r"(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_BUILD = r"[0-9A-Za-z-]+"
_VERSION = rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PRERELEASE}(\.{_PRERELEASE})*)?(\+{_BUILD}(\.{_BUILD})*)?"
_SCALARS = ("int_", "bool_", "string", "version")
_LISTS = ("ints", "bools", "strings", "versions")
_PER_DEVICE = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true "
    "in the ResourceSlice spec"
)
_NOT_PER_DEVICE = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true "
    "in the ResourceSlice spec"
)


def check_device(
    device: Device, path: Path, ctx: Context, *, old: Device | None, per_device: bool
) -> Iterator[FieldError]:
    yield from check_label(device.name, path / "name")
    yield from _check_sizes(device, path)
    yield from _check_attributes(device.attributes, path / "attributes", ctx)
    # What is stored was valid when it came. Rules may be stricter since, and must not block other changes.
    if old is None or _sharing(old) != _sharing(device):
        yield from _check_capacities(device, path / "capacity")
    if old is None or old.taints != device.taints:
        yield from each(device.taints, path / "taints", check_taint, limit=TAINTS)
    if device.consumes_counters:
        yield from each_once(
            device.consumes_counters,
            path / "consumesCounters",
            _check_consumption,
            lambda consumption: consumption.counter_set,
            limit=CONSUMPTIONS,
        )
    yield from _check_nodes(device, path, per_device)
    yield from check_binding_conditions(device.binding_conditions, device.binding_failure_conditions, path, ctx)
    for name, mapping in device.node_allocatable_resource_mappings.items():
        where = (path / "nodeAllocatableResourceMappings").key(name)
        yield from _check_mapping(name, mapping, device.capacity, where)


def has_lists(attribute: DeviceAttribute) -> bool:
    return bool(attribute.ints or attribute.bools or attribute.strings or attribute.versions)


def is_attribute_list(path: str) -> bool:
    """Whether a path leads to a list of an attribute's values."""
    return ".attributes[" in path and path.rpartition(".")[2] in _LISTS


def _check_sizes(device: Device, path: Path) -> Iterator[FieldError]:
    total = len(device.attributes) + len(device.capacity)
    if total > ATTRIBUTES_AND_CAPACITIES:
        detail = f"the total number of attributes and capacities must not exceed {ATTRIBUTES_AND_CAPACITIES}"
        yield invalid(path, total, detail)
    values = sum(map(_count_values, device.attributes.values()))
    if values > ATTRIBUTE_VALUES:
        yield invalid(path, values, f"the total number of attribute values must not exceed {ATTRIBUTE_VALUES}")


def _count_values(attribute: DeviceAttribute) -> int:
    return sum(len(getattr(attribute, name)) for name in _LISTS) if has_lists(attribute) else 1


def _check_attributes(attributes: Mapping[str, DeviceAttribute], path: Path, ctx: Context) -> Iterator[FieldError]:
    for name, attribute in attributes.items():
        if not is_qualified(name):
            yield from check_qualified(name, path)
        if ctx.empty_lists or not _is_simple(attribute):
            yield from _check_attribute(attribute, path.key(cut(name, QUALIFIED_LENGTH)), ctx)


def _is_simple(attribute: DeviceAttribute) -> bool:
    """Whether it is obviously good: one short value. Slices have thousands of these, and paths cost."""
    if attribute.version is not None or has_lists(attribute):
        return False
    values = (attribute.int_, attribute.bool_, attribute.string)
    text = attribute.string
    return values.count(None) == 2 and (text is None or (len(text) <= VALUE_LENGTH and text.isascii()))


def _check_attribute(attribute: DeviceAttribute, path: Path, ctx: Context) -> Iterator[FieldError]:
    given = sum(getattr(attribute, name) is not None for name in _SCALARS)
    if attribute.string is not None:
        yield from _check_text(attribute.string, path / "string")
    if attribute.version is not None:
        yield from _check_version(attribute.version, path / "version")
    if has_lists(attribute) or ctx.empty_lists:
        for name in _LISTS:
            empty = str(path / name) in ctx.empty_lists
            given += empty or bool(getattr(attribute, name))
            if empty:
                yield invalid(path / name, [], "must not be empty if specified")
        yield from each(attribute.strings, path / "strings", _check_text)
        yield from each(attribute.versions, path / "versions", _check_version)
    if given != 1:
        yield invalid(path, as_go(attribute) if given else "", "exactly one value must be specified")


def _check_text(text: str, path: Path) -> Iterator[FieldError]:
    if names.size(text) > VALUE_LENGTH:
        yield too_long(path, VALUE_LENGTH)


def _check_version(text: str, path: Path) -> Iterator[FieldError]:
    """Only the form: that a number is too large to count with is for an expression to say that does so."""
    if not names.fits(_VERSION, text):
        yield invalid(path, text, "must be a string compatible with semver.org spec 2.0.0")
    yield from _check_text(text, path)


def _sharing(device: Device) -> tuple[bool, Mapping[str, DeviceCapacity]]:
    """What the rules for capacity look at: a policy is good or bad depending on whether the device is shared."""
    return bool(device.allow_multiple_allocations), device.capacity


def _check_capacities(device: Device, path: Path) -> Iterator[FieldError]:
    shared = bool(device.allow_multiple_allocations)

    def check(capacity: DeviceCapacity, where: Path) -> Iterator[FieldError]:
        return check_capacity(capacity, where, shared=shared)

    questionable = {
        name: capacity
        for name, capacity in device.capacity.items()
        if capacity.request_policy is not None or not is_qualified(name)
    }
    yield from each_entry(questionable, path, check_qualified, check, longest_key=QUALIFIED_LENGTH)


def _check_consumption(consumption: DeviceCounterConsumption, path: Path) -> Iterator[FieldError]:
    return check_counters(consumption.counter_set, path / "counterSet", consumption.counters, path / "counters")


def check_counters(name: str, name_path: Path, counters: Mapping[str, Counter], path: Path) -> Iterator[FieldError]:
    """A set of counters and its name, where it is declared and where a device takes from it."""
    if not name:
        yield required(name_path)
    else:
        yield from check_label(name, name_path)
    if not counters:
        yield required(path)
    yield from each_entry(counters, path, check_label, None, longest_key=COUNTER_NAME_LENGTH, limit=COUNTERS)


def _check_nodes(device: Device, path: Path, per_device: bool) -> Iterator[FieldError]:
    given = (device.node_name, device.node_selector, device.all_nodes)
    if not per_device:
        if any(value is not None for value in given):
            yield invalid(path, None, _NOT_PER_DEVICE)
        return
    chosen = []
    if device.node_name:
        chosen.append("nodeName")
        yield from check_subdomain(device.node_name, path / "nodeName")
    elif device.node_name is not None:
        yield invalid(path / "nodeName", "", "must not be empty")
    if device.node_selector is not None:
        chosen.append("nodeSelector")
        yield from check_node_selector(device.node_selector, path / "nodeSelector")
    if device.all_nodes:
        chosen.append("allNodes")
    elif device.all_nodes is not None:
        yield invalid(path / "allNodes", False, "must be either unset or set to true")
    if not chosen:
        yield required(path, _PER_DEVICE)
    elif len(chosen) > 1:
        yield invalid(path, set_fields(chosen), _PER_DEVICE)


def _check_mapping(
    name: str, mapping: NodeAllocatableResourceMapping, capacity: Mapping[str, DeviceCapacity], path: Path
) -> Iterator[FieldError]:
    if not is_native(name):
        yield invalid(path, name, "must be a node allocatable resource name")
    key = mapping.capacity_key
    if key == "":
        yield invalid(path / "capacityKey", "", "capacityKey must not be an empty string")
    elif key is not None and key not in capacity:
        yield not_found(path / "capacityKey", key)
    factor = mapping.allocation_multiplier
    if factor is not None and factor.sign <= 0:
        yield invalid(path / "allocationMultiplier", str(factor), "must be positive")
