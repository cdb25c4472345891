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
    """What `device` stands for: with list attributes in `device`, for environments without them in `scalar_device`.

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
    """Make a device ready for expressions."""
    known = device if isinstance(device, Device) else from_plain(Device, dict(device))
    attributes = tuple(sorted(known.attributes.items(), key=_name))
    capacity = tuple(sorted(((name, held.value) for name, held in known.capacity.items()), key=_name))
    return _bound(driver, bool(known.allow_multiple_allocations), attributes, capacity)


def _name(item: tuple[str, Any]) -> str:
    return item[0]


@lru_cache(maxsize=65536)
def _bound(driver: str, shared: bool, attributes: _Attributes, capacity: _Capacity) -> BoundDevice:
    lists = ""
    by_domain: DefaultMap = DefaultMap()
    for name, attribute in attributes:
        try:
            value = _attribute_value(attribute)
        except EvalError as error:
            return BrokenDevice(f"attribute {name}: {error.message}")
        lists = lists or (name if value.__class__ is tuple else "")
        domain, key = _qualified(name, driver)
        by_domain.setdefault(domain, {})[key] = value
    amounts: DefaultMap = DefaultMap()
    for name, amount in capacity:
        domain, key = _qualified(name, driver)
        amounts.setdefault(domain, {})[key] = quantity_value(amount)
    values: dict[str, Value] = {
        "driver": driver,
        "allowMultipleAllocations": shared,
        "attributes": by_domain,
        "capacity": amounts,
    }
    return ListDevice(values, lists) if lists else BoundDevice(values)


def _attribute_value(attribute: DeviceAttribute) -> Value:
    lists = attribute.ints or attribute.bools or attribute.strings
    if lists:
        return tuple(lists)
    if attribute.versions:
        return tuple(map(_version, attribute.versions))
    for scalar in (attribute.int_, attribute.bool_, attribute.string):
        if scalar is not None:
            return scalar
    if attribute.version is not None:
        return _version(attribute.version)
    raise EvalError("unsupported attribute value")


def _version(text: str) -> SemverValue:
    try:
        return SemverValue(Version.parse(text))
    except SemverError as error:
        raise EvalError(f"parse semantic version: {error}") from None


def _qualified(name: str, driver: str) -> tuple[str, str]:
    """Domain and identifier; a name without a domain is in the driver's."""
    domain, slash, identifier = name.partition("/")
    return (domain, identifier) if slash else (driver, name)
