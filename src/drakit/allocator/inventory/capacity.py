"""How much of a device one allocation takes: request policies of consumable capacity.

In:  the amounts that a request names and the capacities that a device publishes.
Out: the amount of every capacity that an allocation consumes, or nothing when the device can never serve it.
"""

from __future__ import annotations

from collections.abc import Mapping

from drakit.api import CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity
from drakit.base.quantity import Format, Quantity

NO_AMOUNTS: Mapping[str, Quantity] = {}


def consumption(
    requested: Mapping[str, Quantity], capacities: Mapping[str, DeviceCapacity]
) -> Mapping[str, Quantity] | None:
    """What one allocation takes of an empty device; None when it is too small or a policy forbids it."""
    if not requested.keys() <= capacities.keys():
        return None
    taken: dict[str, Quantity] = {}
    for name, capacity in capacities.items():
        amount = consumed_amount(requested.get(name), capacity)
        if amount is None or amount > capacity.value:
            return None
        taken[name] = amount
    return taken


def consumed_amount(requested: Quantity | None, capacity: DeviceCapacity) -> Quantity | None:
    """The requested amount rounded up to what the policy allows; None when it allows nothing that large."""
    policy = capacity.request_policy
    if policy is None:
        return capacity.value if requested is None else requested
    amount = _default(policy, capacity) if requested is None else _rounded(requested, policy)
    return amount if _allowed(amount, policy) else None


def _default(policy: CapacityRequestPolicy, capacity: DeviceCapacity) -> Quantity:
    return capacity.value if policy.default is None else policy.default


def _rounded(requested: Quantity, policy: CapacityRequestPolicy) -> Quantity:
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _rounded_in_range(requested, policy.valid_range, policy.valid_range.min)
    return next((value for value in policy.valid_values if value >= requested), requested)


def _rounded_in_range(requested: Quantity, valid: CapacityRequestPolicyRange, low: Quantity) -> Quantity:
    if requested < low:
        return low
    if valid.step is None:
        return requested
    steps = -((low.value - requested.value) // valid.step.value)
    return Quantity.of(low.value + steps * valid.step.value, Format.BINARY_SI)


def _allowed(amount: Quantity, policy: CapacityRequestPolicy) -> bool:
    if policy.default is not None and amount == policy.default:
        return True
    if policy.valid_range is not None:
        return _in_range(amount, policy.valid_range)
    return not policy.valid_values or amount in policy.valid_values


def _in_range(amount: Quantity, valid: CapacityRequestPolicyRange) -> bool:
    if valid.max is not None and amount > valid.max:
        return False
    if valid.step is None:
        return True
    low = valid.min.value if valid.min is not None else 0
    return (amount.value - low) % valid.step.value == 0
