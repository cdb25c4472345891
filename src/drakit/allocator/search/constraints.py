"""Constraints between the devices of a claim: one attribute that all share, or that differs between all.

In:  a claim's constraints and the attribute values of devices.
Out: the rule that folds one device more into the state so far.

A state is None before the first device. States are immutable: taking a device back is going back to the state before.
Invariant: a device that is refused in a state is refused in every state that follows from it. The search relies on it.
"""

from __future__ import annotations

from dataclasses import dataclass

from drakit.allocator.inventory.attributes import Values
from drakit.api import DeviceConstraint


@dataclass(frozen=True, slots=True, eq=False)
class Constraint:
    """`distinct`: values differ (distinctAttribute); otherwise they match (matchAttribute)."""

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
