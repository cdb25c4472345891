"""A device bound to expressions: its attributes and capacities as CEL values, computed once per shape.

In:  the driver's name and a Device (or the same as plain data).
Out: a BoundDevice. Two devices of one shape give the same object, so it can stand for the shape in any cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from drakit.api import Device, DeviceAttribute, from_plain
from drakit.base.quantity import Quantity
from drakit.base.semver import SemverError, Version
from drakit.cel import DefaultMap, EvalError, SemverValue, Value, quantity_value

_Attributes = tuple[tuple[str, DeviceAttribute], ...]
_Capacity = tuple[tuple[str, Quantity], ...]


class BoundDevice:
    """The value of `device` in an expression. `scalar_device` is for environments without list attributes.

    Invariant: nobody changes what they hold. Reading the one that an environment cannot have raises EvalError, so that
    an expression that does not even look at the device fails too, as upstream.
    """

    __slots__ = ("__weakref__", "device", "scalar_device")

    device: dict[str, Value]
    scalar_device: dict[str, Value]

    def __init__(self, device: dict[str, Value]) -> None:
        self.device = device
        self.scalar_device = device


class ListDevice(BoundDevice):
    """A device with list attributes: unreadable where the gate for those is off."""

    __slots__ = ("_list",)

    def __init__(self, device: dict[str, Value], name: str) -> None:
        self.device = device
        self._list = name

    @property
    def scalar_device(self) -> dict[str, Value]:  # type: ignore[override]
        raise EvalError(f"attribute {self._list}: unsupported attribute value")


class BrokenDevice(BoundDevice):
    """A device with an attribute that has no value."""

    __slots__ = ("_fault",)

    def __init__(self, fault: str) -> None:
        self._fault = fault

    @property
    def device(self) -> dict[str, Value]:  # type: ignore[override]
        raise EvalError(self._fault)

    scalar_device = device


def bind(driver: str, device: Device | Mapping[str, Any]) -> BoundDevice:
    """Make a device ready for expressions. A name without a domain is in that of the driver."""
    known = device if isinstance(device, Device) else from_plain(Device, dict(device))
    # Sorted, so that devices that list the same attributes in another order share one binding.
    attributes = tuple(sorted(known.attributes.items()))  # names are unique, so nothing else is compared
    capacity = tuple(sorted([(name, held.value) for name, held in known.capacity.items()]))
    return _bound(driver, bool(known.allow_multiple_allocations), attributes, capacity)


@lru_cache(maxsize=16384)
def _bound(driver: str, shared: bool, attributes: _Attributes, capacity: _Capacity) -> BoundDevice:
    lists = ""
    by_domain: DefaultMap = DefaultMap()
    for name, attribute in attributes:
        try:
            value = _attribute_value(attribute)
        except EvalError as error:
            # One bad value breaks the device, not the pool: each selector on it fails, and says why.
            return BrokenDevice(f"attribute {name}: {error.message}")
        lists = lists or (name if value.__class__ is tuple else "")
        domain, slash, key = name.partition("/")
        by_domain.setdefault(domain if slash else driver, {})[key if slash else name] = value
    amounts: DefaultMap = DefaultMap()
    for name, amount in capacity:
        domain, slash, key = name.partition("/")
        amounts.setdefault(domain if slash else driver, {})[key if slash else name] = quantity_value(amount)
    values: dict[str, Value] = {
        "driver": driver,
        "allowMultipleAllocations": shared,
        "attributes": by_domain,
        "capacity": amounts,
    }
    return ListDevice(values, lists) if lists else BoundDevice(values)


def _attribute_value(attribute: DeviceAttribute) -> Value:
    """The one value that is set; most are strings."""
    if attribute.string is not None:
        return attribute.string
    if attribute.int_ is not None:
        return attribute.int_
    if attribute.bool_ is not None:
        return attribute.bool_
    if attribute.version is not None:
        return _version(attribute.version)
    if attribute.versions:
        return tuple(map(_version, attribute.versions))
    if lists := attribute.ints or attribute.bools or attribute.strings:
        return tuple(lists)
    raise EvalError("unsupported attribute value")


def _version(text: str) -> SemverValue:
    try:
        return SemverValue(Version.parse(text))
    except SemverError as error:
        raise EvalError(f"parse semantic version: {error}") from None
