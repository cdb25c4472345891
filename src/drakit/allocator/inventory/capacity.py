"""How much of a device one allocation takes: request policies of consumable capacity.

In:  the amounts that a request names and the capacities that a device publishes.
Out: the amount of every capacity that an allocation consumes, or why the device can never serve it.

A name with the driver's own domain and the name without it are one capacity. Amounts are exact, also below one. No
negative amount is ever returned: it would give capacity to others that does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping

from drakit.api import CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity
from drakit.base.quantity import Format, Quantity

NO_AMOUNTS: Mapping[str, Quantity] = {}


def short_name(driver: str, name: str) -> str:
    """The name of a capacity without the domain of the driver that publishes it."""
    return name.removeprefix(f"{driver}/")


def consumption(
    requested: Mapping[str, Quantity], capacities: Mapping[str, DeviceCapacity], *, driver: str = ""
) -> Mapping[str, Quantity] | None:
    """What one allocation takes of an empty device, by the device's names; None when it cannot serve the request."""
    asked = _asked(requested, capacities, driver)
    if asked is None:
        return None
    taken: dict[str, Quantity] = {}
    for name, capacity in capacities.items():
        amount = consumed_amount(asked.get(name), capacity)
        if amount is None or amount > capacity.value:
            return None
        taken[name] = amount
    return taken


def _asked(
    requested: Mapping[str, Quantity], capacities: Mapping[str, DeviceCapacity], driver: str
) -> Mapping[str, Quantity] | None:
    """The request in the device's names; None when the device lacks a capacity, or a name stands for two."""
    own = {short_name(driver, name): name for name in capacities}
    if len(own) < len(capacities):
        return None
    asked = {own.get(short_name(driver, name), ""): amount for name, amount in requested.items()}
    return None if "" in asked or len(asked) < len(requested) else asked


def consumed_amount(requested: Quantity | None, capacity: DeviceCapacity) -> Quantity | None:
    """The requested amount rounded up to what the policy allows; None when it allows nothing that large."""
    policy = capacity.request_policy
    amount = capacity.value if requested is None else requested
    if policy is not None:
        amount = _default(policy, capacity) if requested is None else _rounded(requested, policy)
        if not _allowed(amount, policy):
            return None
    return None if amount.sign < 0 or (requested is not None and requested.sign < 0) else amount


def problem(requested: Mapping[str, Quantity], capacities: Mapping[str, DeviceCapacity], *, driver: str) -> str:
    """Why a device cannot serve a request even when nobody uses it; empty when it can."""
    twice = _first_twice(capacities, driver)
    if twice:
        return f"publishes capacity {twice} twice, with and without the domain of its driver"
    if twice := _first_twice(requested, driver):
        return f"the request names capacity {twice} twice, with and without the domain of the driver"
    own = {short_name(driver, name): name for name in capacities}
    asked = {own.get(short_name(driver, name)): (name, amount) for name, amount in requested.items()}
    if None in asked:
        return f"has no capacity {asked[None][0]}"
    for name, capacity in capacities.items():
        if told := _amount_problem(name, asked.get(name, ("", None))[1], capacity):
            return told
    return ""


def _amount_problem(name: str, asked: Quantity | None, capacity: DeviceCapacity) -> str:
    if asked is not None and asked.sign < 0:
        return f"capacity {name}: {asked} is asked for, which is less than nothing"
    amount = consumed_amount(asked, capacity)
    if amount is not None:
        return ""
    if asked is not None:
        return f"the request policy of capacity {name} does not allow {asked}"
    default = capacity.value if capacity.request_policy is None else _default(capacity.request_policy, capacity)
    if default.sign < 0:
        return f"capacity {name}: {default} is what an allocation takes by default, which is less than nothing"
    return f"the request policy of capacity {name} does not allow its default {default}"


def _first_twice(names: Mapping[str, object], driver: str) -> str:
    return next((name for name in names if name != short_name(driver, name) and short_name(driver, name) in names), "")


def _default(policy: CapacityRequestPolicy, capacity: DeviceCapacity) -> Quantity:
    return capacity.value if policy.default is None else policy.default


def _rounded(requested: Quantity, policy: CapacityRequestPolicy) -> Quantity:
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _rounded_in_range(requested, policy.valid_range, policy.valid_range.min)
    return next((value for value in policy.valid_values if value >= requested), requested)


def _rounded_in_range(requested: Quantity, valid: CapacityRequestPolicyRange, low: Quantity) -> Quantity:
    if requested < low:
        return low
    if valid.step is None or valid.step.sign <= 0:
        return requested
    # Division that rounds up: the least number of whole steps that covers the request.
    steps = -((low.nanos - requested.nanos) // valid.step.nanos)
    return Quantity(low.nanos + steps * valid.step.nanos, Format.BINARY_SI)


def _allowed(amount: Quantity, policy: CapacityRequestPolicy) -> bool:
    # The default is always allowed, even if it is no valid value or step.
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
    low = valid.min.nanos if valid.min is not None else 0
    # With a step of zero or less nothing but the default is allowed.
    return valid.step.sign > 0 and (amount.nanos - low) % valid.step.nanos == 0
