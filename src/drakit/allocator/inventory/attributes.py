"""Attribute values of devices, as constraints compare them.

In:  the attributes that a device publishes, and the fully qualified name of one.
Out: the set of its values; None when the device does not have the attribute.
"""

from __future__ import annotations

from collections.abc import Mapping

from drakit.api import DeviceAttribute

AttributeValue = tuple[str, int | bool | str]
"""(type, value): values of different types are never equal."""
Values = frozenset[AttributeValue]
UNCOMPARABLE: Values = frozenset()


def attribute_values(
    driver: str, attributes: Mapping[str, DeviceAttribute], name: str, *, lists: bool
) -> Values | None:
    """The values of a fully qualified attribute; None when the device does not have it.

    A name without a domain belongs to the driver's domain. Without `lists`, list values cannot be compared.
    """
    found = attributes.get(name)
    if found is None:
        domain, _, short = name.partition("/")
        found = attributes.get(short) if domain == driver else None
    if found is None:
        return None
    return _values(found, lists=lists)


def _values(found: DeviceAttribute, *, lists: bool) -> Values:
    if lists:
        for kind, many in (
            ("int", found.ints),
            ("bool", found.bools),
            ("string", found.strings),
            ("version", found.versions),
        ):
            if many:
                return frozenset((kind, each) for each in many)
    for kind, one in (
        ("string", found.string),
        ("int", found.int_),
        ("bool", found.bool_),
        ("version", found.version),
    ):
        if one is not None:
            return frozenset({(kind, one)})
    return UNCOMPARABLE
