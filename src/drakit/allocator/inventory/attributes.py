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
    if lists and (found.ints or found.bools or found.strings or found.versions):
        return _listed(found)
    if found.string is not None:
        return frozenset({("string", found.string)})
    if found.int_ is not None:
        return frozenset({("int", found.int_)})
    if found.bool_ is not None:
        return frozenset({("bool", found.bool_)})
    if found.version is not None:
        return frozenset({("version", found.version)})
    return UNCOMPARABLE


def _listed(found: DeviceAttribute) -> Values:
    if found.ints:
        return frozenset([("int", each) for each in found.ints])
    if found.bools:
        return frozenset([("bool", each) for each in found.bools])
    if found.strings:
        return frozenset([("string", each) for each in found.strings])
    return frozenset([("version", each) for each in found.versions])
