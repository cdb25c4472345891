"""What one device takes of its node."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakit.base.quantity import Quantity
from drakit.scheduler.dynamicresources.nodeallocatable.amounts import CannotCount, device_amounts, multiply
from tests.scheduler.dynamicresources.nodeallocatable.objects import (
    by_capacity,
    capacity,
    mapped_device,
    per_device,
    quantity,
    result,
    texts,
)


def test_a_device_takes_its_multiplier_of_each_resource() -> None:
    found = device_amounts(mapped_device(**per_device(cpu="2", memory="8Gi")), result())
    assert texts(found) == {"cpu": "2", "memory": "8Gi"}


def test_a_device_without_multiplier_takes_one() -> None:
    assert texts(device_amounts(mapped_device(nodeAllocatableResourceMappings={"cpu": {}}), result())) == {"cpu": "1"}


def test_a_device_takes_the_capacity_that_is_consumed_of_it() -> None:
    socket = mapped_device(**capacity(cpu="128", memory="256Gi"), **by_capacity(cpu="cpu", memory="memory"))
    assert texts(device_amounts(socket, result(cpu="4", memory="8Gi"))) == {"cpu": "4", "memory": "8Gi"}


def test_consumed_capacity_is_multiplied() -> None:
    cores = mapped_device(**capacity(cores="64"), **by_capacity("2", cpu="cores"))
    assert texts(device_amounts(cores, result(cores="8"))) == {"cpu": "16"}
    assert texts(device_amounts(cores, result(cores="500m"))) == {"cpu": "1"}


def test_a_partition_without_consumed_capacity_takes_all_its_capacity() -> None:
    cache = mapped_device(**capacity(cpu="8"), **by_capacity(cpu="cpu"))
    assert texts(device_amounts(cache, result())) == {"cpu": "8"}
    assert texts(device_amounts(mapped_device(**capacity(cpu="8"), **by_capacity("500m", cpu="cpu")), result())) == {
        "cpu": "4"
    }


def test_a_capacity_that_is_no_part_of_the_allocation_takes_nothing() -> None:
    socket = mapped_device(**capacity(cpu="8", memory="8Gi"), **by_capacity(cpu="cpu", memory="memory"))
    assert texts(device_amounts(socket, result(cpu="1"))) == {"cpu": "1"}


def test_a_capacity_that_the_device_has_no_more_cannot_be_counted() -> None:
    with pytest.raises(CannotCount) as told:
        device_amounts(mapped_device(**by_capacity(cpu="cores")), result())
    assert str(told.value) == (
        "ConsumedCapacity is nil, but Capacity key 'cores' is set in NodeAllocatableResourceMappings for resource cpu"
    )


def test_a_device_without_mappings_takes_nothing() -> None:
    assert device_amounts(mapped_device(**capacity(cpu="8")), result(cpu="8")) == {}


@pytest.mark.parametrize(
    ("amount", "multiplier", "product"),
    [("1Gi", "1", "1Gi"), ("3", "2Gi", "6442450944"), ("1n", "1n", "1n"), ("1500m", "1500m", "2250m"), ("0", "5", "0")],
)
def test_a_product_is_written_like_the_amount(amount: str, multiplier: str, product: str) -> None:
    assert str(multiply(quantity(amount), quantity(multiplier))) == product


@given(st.integers(0, 10**18), st.integers(1, 10**18))
def test_a_product_is_never_too_small_and_less_than_a_nano_too_large(amount: int, multiplier: int) -> None:
    product = multiply(Quantity(amount), Quantity(multiplier)).nanos * 10**9
    assert 0 <= product - amount * multiplier < 10**9
