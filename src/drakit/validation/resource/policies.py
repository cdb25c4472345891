"""Request policies: which amounts of a shared device's capacity may be asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from drakit.api import CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity
from drakit.base.fields import FieldError, Path, forbidden, invalid, required
from drakit.base.quantity import Quantity
from drakit.validation.fields.sequences import each_once

VALUES = 10
_NOT_DEFAULT = "default value is not valid according to the requestPolicy"


def check_capacity(capacity: DeviceCapacity, path: Path, *, shared: bool) -> Iterator[FieldError]:
    """Only devices that allow multiple allocations have policies."""
    policy, where = capacity.request_policy, path / "requestPolicy"
    if policy is None:
        return
    if not shared:
        yield forbidden(where, "allowMultipleAllocations must be true")
    elif policy.valid_values and policy.valid_range is not None:
        detail = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        yield forbidden(where, detail)
    else:
        yield from _check_policy(policy, capacity.value, where)


def _check_policy(policy: CapacityRequestPolicy, available: Quantity, path: Path) -> Iterator[FieldError]:
    if policy.valid_values:
        if policy.default is None:
            yield required(path / "default", "required when validValues is defined")
        else:
            yield from _check_values(policy.valid_values, policy.default, available, path / "validValues")
    elif policy.valid_range is not None:
        if policy.default is None:
            yield required(path / "default", "required when validRange is defined")
        else:
            yield from _check_range(policy.valid_range, policy.default, available, path / "validRange")


def _check_values(
    values: Sequence[Quantity], default: Quantity, available: Quantity, path: Path
) -> Iterator[FieldError]:
    for index, (before, value) in enumerate(pairwise(values), start=1):
        if before > value:
            yield invalid(path[index], str(value), "values must be sorted in ascending order")

    def check(value: Quantity, where: Path) -> Iterator[FieldError]:
        if value > available:
            yield invalid(where, str(value), f"option is larger than capacity value: {available}")

    yield from each_once(values, path, check, lambda value: str(value.value), limit=VALUES)
    if len(values) > VALUES or default not in values:
        yield invalid(path, str(default), _NOT_DEFAULT)


def _check_range(
    bounds: CapacityRequestPolicyRange, default: Quantity, available: Quantity, path: Path
) -> Iterator[FieldError]:
    low, high = bounds.min, bounds.max
    if low is None:
        yield required(path / "min", "required when validRange is defined")
        return
    if low > available:
        yield invalid(path / "min", str(low), f"min is larger than capacity value: {available}")
    if default < low:
        yield invalid(path / "min", str(default), f"default is less than min: {low}")
    if high is not None:
        if low > high:
            # Path and value are upstream's: the error about min stands at max.
            yield invalid(path / "max", str(low), f"min is larger than max: {high}")
        if high > available:
            yield invalid(path / "max", str(high), f"max is larger than capacity value: {available}")
        if default > high:
            yield invalid(path / "max", str(default), f"default is more than max: {high}")
    if bounds.step is not None:
        yield from _check_step(bounds.step, low, (default, high), available, path / "step")


def _check_step(
    step: Quantity, low: Quantity, targets: tuple[Quantity | None, ...], available: Quantity, path: Path
) -> Iterator[FieldError]:
    """The default and the upper bound are a whole number of steps above the lower one."""
    if step.sign <= 0:
        yield invalid(path, str(step), "must be greater than zero")
        return
    if low + step > available:
        yield invalid(path, str(step), f"one step {low + step} is larger than capacity value: {available}")
    for target in targets:
        if target is not None and (target.value - low.value) % step.value != 0:
            detail = f"value is not a multiple of a given step ({step}) from ({low})"
            yield invalid(path, str(target), detail)
