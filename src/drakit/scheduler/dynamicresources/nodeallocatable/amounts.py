"""What one allocated device takes of its node's own cpu, memory and so on.

In:  a device as published, and what an allocation says of it.
Out: the amounts by resource name.

A mapping without `capacityKey` counts devices; one with it counts the capacity that the allocation consumes. Where an
allocation consumes no capacity (a partition, a device for one claim alone), the claim has all of the device.
"""

from __future__ import annotations

from drakit.api import Device, DeviceRequestAllocationResult
from drakit.base.errors import Retryable
from drakit.base.quantity import Quantity

Amounts = dict[str, Quantity]
_ONE = Quantity.of(1)
_NANO = 10**9


class CannotCount(Retryable):
    """A device takes something of the node, and it cannot be told how much."""


def device_amounts(device: Device, result: DeviceRequestAllocationResult) -> Amounts:
    """The amounts of one result; a resource whose capacity is no part of the allocation is left out."""
    found: Amounts = {}
    for name, mapping in device.node_allocatable_resource_mappings.items():
        multiplier = mapping.allocation_multiplier or _ONE
        if not mapping.capacity_key:
            found[name] = multiplier
        elif (consumed := _consumed(name, mapping.capacity_key, device, result)) is not None:
            found[name] = multiply(consumed, multiplier)
    return found


def multiply(amount: Quantity, multiplier: Quantity) -> Quantity:
    """The product, in the notation of the amount, rounded up to a whole nano."""
    return Quantity(-(-amount.nanos * multiplier.nanos // _NANO), amount.format)


def add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        before = total.get(name)
        total[name] = amount if before is None else before + amount


def _consumed(name: str, key: str, device: Device, result: DeviceRequestAllocationResult) -> Quantity | None:
    if result.consumed_capacity:
        return result.consumed_capacity.get(key)
    capacity = device.capacity.get(key)
    if capacity is None:
        raise CannotCount(
            f"ConsumedCapacity is nil, but Capacity key '{key}' is set in NodeAllocatableResourceMappings "
            f"for resource {name}"
        )
    return capacity.value
