"""Constraints between the devices of a claim: one attribute that all share, or that differs between all.

In:  a claim's constraints and the attributes of devices.
Out: per device the set of values that count, and the rule that folds one device more into the state so far.

A state is None before the first device. States are immutable: taking a device back is going back to the state before.
Invariant: a device that is refused in a state is refused in every state that follows from it. The search relies on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from drakit.api import DeviceAttribute, DeviceConstraint

Value = tuple[str, int | bool | str]
Values = frozenset[Value]
UNCOMPARABLE: Values = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Constraint:
    index: int
    claim: int
    attribute: str
    distinct: bool
    requests: frozenset[str]
    lists: bool

    @staticmethod
    def of(index: int, claim: int, spec: DeviceConstraint, *, lists: bool) -> Constraint | None:
        """None when the constraint is of a type that this version does not know."""
        attribute = spec.match_attribute or spec.distinct_attribute
        if attribute is None or not attribute:
            return None
        return Constraint(index, claim, attribute, not spec.match_attribute, frozenset(spec.requests), lists)

    def concerns(self, request: str, full_name: str) -> bool:
        """No names mean every request; the name of a request covers all its alternatives."""
        return not self.requests or request in self.requests or full_name in self.requests

    def add(self, state: Values | None, values: Values | None) -> Values | None:
        """The state with one device more; None when the device breaks the constraint."""
        if values is None:
            return None
        return self._differ(state, values) if self.distinct else self._match(state, values)

    def _match(self, state: Values | None, values: Values) -> Values | None:
        if state is None:
            # Without list attributes, any first device is fine: nothing is compared with it until a second one comes.
            return values if values or not self.lists else None
        return (state & values) or None

    def _differ(self, state: Values | None, values: Values) -> Values | None:
        if state is None:
            return values
        return state | values if values and not state & values else None


def attribute_values(
    driver: str, attributes: Mapping[str, DeviceAttribute], name: str, *, lists: bool
) -> Values | None:
    """The values of a fully qualified attribute; None when the device does not have it.

    A name without a domain belongs to the driver's domain. Values of different types are never equal.
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
