"""Warnings about devices that drivers publish."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from drakit.api import CapacityRequestPolicy, Device, DeviceAttribute, Quantity, ResourceSlice
from drakit.base.fields import Path
from drakit.base.gates import FeatureGates
from drakit.validation.warnings.findings import FieldWarning

PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
PCI_BUS_ID = "resource.kubernetes.io/pciBusID"
_ROOT = re.compile(r"pci[0-9a-f]{4}:[0-9a-f]{2}")
_ADDRESS = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def warn_of_slice(each: ResourceSlice, _gates: FeatureGates) -> Iterator[FieldWarning]:
    for index, device in enumerate(each.spec.devices):
        # Most devices have nothing to say: paths are made only for those that have.
        if found := list(_of_device(each.spec.driver, device)):
            path = Path("spec.devices")[index]
            yield from (FieldWarning(rule, Path(f"{path}.{where}"), message) for rule, where, message in found)


def _of_device(driver: str, device: Device) -> Iterator[tuple[str, str, str]]:
    for name, capacity in device.capacity.items():
        where = f"capacity[{name}]"
        if capacity.value.sign < 0:
            yield (
                "negative-capacity",
                f"{where}.value",
                f"{capacity.value} is less than nothing: nobody gets the device",
            )
        if capacity.request_policy is not None:
            for field, message in _of_policy(capacity.request_policy):
                yield "odd-policy", f"{where}.requestPolicy{field}", message
    for field, keys in (("attributes", device.attributes), ("capacity", device.capacity)):
        for name in _twice(driver, keys):
            yield f"{_SINGULAR[field]}-twice", f"{field}[{name}]", _TWICE[field].format(short=name.rpartition("/")[2])
    yield from _of_standard(device.attributes)


_SINGULAR = {"attributes": "attribute", "capacity": "capacity"}
_TWICE = {
    "attributes": '"{short}" without the domain of the driver is the same attribute: which of the two counts is chance',
    "capacity": '"{short}" without the domain of the driver is the same capacity: nobody gets the device',
}


def _twice(driver: str, keys: Mapping[str, object]) -> Iterator[str]:
    """Names that are there with the driver's domain and without it."""
    prefix = f"{driver}/"
    return (name for name in keys if name.startswith(prefix) and name.removeprefix(prefix) in keys)


def _of_policy(policy: CapacityRequestPolicy) -> Iterator[tuple[str, str]]:
    if policy.default is None:
        yield "", "without a default, a request that does not name this capacity takes all of it"
    elif policy.default.sign < 0:
        yield ".default", f"{policy.default} is less than nothing: requests that do not name this capacity are refused"
    low = policy.valid_range.min if policy.valid_range else None
    if low is not None and low.sign < 0:
        yield ".validRange.min", f"{low} is less than nothing: no request is rounded up to it"
    for index, value in enumerate(policy.valid_values):
        if value.sign < 0:
            yield f".validValues[{index}]", f"{value} is less than nothing: nobody gets it"
    if policy.valid_range is not None and policy.valid_range.step is not None:
        yield from _of_step(policy.default, low, policy.valid_range.step)


def _of_step(default: Quantity | None, low: Quantity | None, step: Quantity) -> Iterator[tuple[str, str]]:
    if default is not None and low is not None and step.sign > 0 and (default.nanos - low.nanos) % step.nanos:
        yield ".default", f"{default} is no whole number of steps ({step}) above {low}"


def _of_standard(attributes: Mapping[str, DeviceAttribute]) -> Iterator[tuple[str, str, str]]:
    """Attributes whose meaning Kubernetes fixes: constraints across drivers rely on their form."""
    for name, form, example in ((PCIE_ROOT, _ROOT, "pci0000:00"), (PCI_BUS_ID, _ADDRESS, "0000:3b:00.0")):
        found = attributes.get(name)
        if found is None:
            continue
        values = (found.string,) if found.string is not None else found.strings
        if not values:
            yield "standard-attribute", f"attributes[{name}]", f'must be a string such as "{example}"'
        for value in values:
            if not form.fullmatch(value):
                message = f'"{value}" is not of the form "{example}": other drivers will not match it'
                yield "standard-attribute", f"attributes[{name}]", message
