"""Consumable capacity: policies, shares, and devices that change between shared and dedicated."""

from __future__ import annotations

from typing import Any

import pytest

from drakit.allocator.inventory.capacity import consumed_amount, consumption
from drakit.api import DeviceCapacity, from_plain
from drakit.base.quantity import Quantity
from tests.allocator.objects import GPU, claim, cluster, device, exactly, gates_without, held, picked, run, slice_of

RANGE = {"default": "1Gi", "validRange": {"min": "1Gi", "max": "8Gi", "step": "2Gi"}}
VALUES = {"default": "2Gi", "validValues": ["2Gi", "4Gi", "8Gi"]}
OPEN = {"default": "1Gi", "validRange": {"min": "1Gi"}}


@pytest.mark.parametrize(
    ("policy", "requested", "taken"),
    [
        (None, None, "10Gi"),
        (None, "3Gi", "3Gi"),
        (RANGE, None, "1Gi"),
        (RANGE, "100Mi", "1Gi"),
        (RANGE, "1Gi", "1Gi"),
        (RANGE, "1025Mi", "3Gi"),
        (RANGE, "3Gi", "3Gi"),
        (RANGE, "7Gi", "7Gi"),
        (RANGE, "7500Mi", None),
        (VALUES, None, "2Gi"),
        (VALUES, "1", "2Gi"),
        (VALUES, "4Gi", "4Gi"),
        (VALUES, "5Gi", "8Gi"),
        (VALUES, "9Gi", None),
        (OPEN, "1500Mi", "1500Mi"),
        ({"default": "5"}, None, "5"),
        ({"default": "5"}, "7", "7"),
    ],
)
def test_a_request_is_rounded_up_to_what_the_policy_allows(policy: Any, requested: Any, taken: Any) -> None:
    capacity = from_plain(DeviceCapacity, {"value": "10Gi", **({"requestPolicy": policy} if policy else {})})
    amount = consumed_amount(Quantity.parse(requested) if requested else None, capacity)
    assert amount == (Quantity.parse(taken) if taken else None)


def test_a_device_that_lacks_a_requested_capacity_or_is_too_small_serves_nothing() -> None:
    capacity = {"memory": from_plain(DeviceCapacity, {"value": "10"})}
    assert consumption({"nothing": Quantity.parse("1")}, capacity) is None
    assert consumption({"memory": Quantity.parse("11")}, capacity) is None
    assert consumption({"memory": Quantity.parse("10")}, capacity) == {"memory": Quantity.parse("10")}


def shared(name: str = "nic", value: str = "10", default: str = "1") -> dict[str, Any]:
    policy = {"requestPolicy": {"default": default}}
    return device(name, allowMultipleAllocations=True, capacity={"bandwidth": {"value": value, **policy}})


def wants(amount: str, count: int = 1) -> Any:
    return exactly("req", count, capacity={"requests": {"bandwidth": amount}})


def test_shares_add_up_to_the_capacity_and_no_further() -> None:
    old = held("old", "nic", shareID="s", consumedCapacity={"bandwidth": "6"})
    inventory = cluster(slice_of(shared()), used=[old])
    assert picked(inventory, claim(wants("4"))) == ["nic"]
    assert picked(inventory, claim(wants("5"))) is None
    assert picked(inventory, claim(wants("2"), wants("2") | {"name": "other"})) == ["nic", "nic"]
    assert picked(inventory, claim(wants("2"), wants("3") | {"name": "other"})) is None


def test_one_request_takes_a_device_once() -> None:
    assert picked(cluster(slice_of(shared())), claim(wants("1", 2))) is None


def test_the_result_has_a_share_id_and_the_consumed_amounts_even_of_zero() -> None:
    got = run(cluster(slice_of(shared(default="0"))), claim(exactly()))
    (result,) = got.allocations[0].devices.results  # type: ignore[union-attr]
    assert result.share_id == "share"
    assert result.consumed_capacity == {"bandwidth": Quantity.parse("0")}


def test_on_a_dedicated_device_a_requested_amount_is_a_filter() -> None:
    devices = [device(f"d{size}", capacity={"bandwidth": {"value": str(size)}}) for size in (2, 8)]
    got = run(cluster(slice_of(*devices)), claim(wants("4")))
    (result,) = got.allocations[0].devices.results  # type: ignore[union-attr]
    assert (result.device, result.share_id, result.consumed_capacity) == ("d8", None, {})


def test_a_shared_device_without_capacity_can_be_had_without_end() -> None:
    unlimited = device("free", allowMultipleAllocations=True)
    shares = [held(f"old-{n}", "free", shareID=f"s{n}") for n in range(5)]
    got = run(cluster(slice_of(unlimited), used=shares), claim(exactly()))
    (result,) = got.allocations[0].devices.results  # type: ignore[union-attr]
    assert (result.device, result.share_id, result.consumed_capacity) == ("free", "share", {})


def test_a_dedicated_device_turned_shared_stays_dedicated_until_it_is_released() -> None:
    inventory = cluster(slice_of(shared()), used=[held("old", "nic")])
    assert picked(inventory, claim(wants("1"))) is None
    inventory.remove_claim("uid-old")
    assert picked(inventory, claim(wants("1"))) == ["nic"]


@pytest.mark.parametrize("consumed", [{}, {"consumedCapacity": {"bandwidth": "1"}}])
def test_a_shared_device_turned_dedicated_is_not_given_while_a_share_is_left(consumed: dict[str, Any]) -> None:
    dedicated = device("nic", capacity={"bandwidth": {"value": "10"}})
    inventory = cluster(slice_of(dedicated), used=[held("old", "nic", shareID="s", **consumed)])
    assert picked(inventory, claim(wants("1"))) is None
    inventory.remove_claim("uid-old")
    assert picked(inventory, claim(wants("1"))) == ["nic"]


def test_turned_back_to_shared_the_left_share_counts_again() -> None:
    old = held("old", "nic", shareID="s", consumedCapacity={"bandwidth": "8"})
    inventory = cluster(slice_of(device("nic", capacity={"bandwidth": {"value": "10"}})), used=[old])
    inventory.put_slice(slice_of(shared(), generation=2))
    assert picked(inventory, claim(wants("2"))) == ["nic"]
    assert picked(inventory, claim(wants("3"))) is None


def test_a_policy_that_changes_later_does_not_change_what_is_recorded() -> None:
    old = held("old", "nic", shareID="s", consumedCapacity={"bandwidth": "3"})
    inventory = cluster(slice_of(shared(default="5")), used=[old])
    assert picked(inventory, claim(exactly())) == ["nic"]
    inventory.put_slice(slice_of(shared(default="8"), generation=2))
    assert picked(inventory, claim(exactly())) is None


def test_without_the_gate_a_share_is_the_whole_device_and_amounts_are_refused() -> None:
    gates = gates_without("DRAConsumableCapacity")
    old = held("old", "nic", shareID="s", consumedCapacity={"bandwidth": "1"})
    assert picked(cluster(slice_of(shared()), used=[old], gates=gates), claim(exactly())) is None
    got = run(cluster(slice_of(shared()), gates=gates), claim(wants("1")))
    assert "the DRAConsumableCapacity feature is disabled" in got.message  # type: ignore[union-attr]


def test_selectors_see_whether_a_device_can_be_shared() -> None:
    inventory = cluster(slice_of(device("whole"), shared()))
    assert picked(inventory, claim(exactly("req", 1, "device.allowMultipleAllocations == true"))) == ["nic"]
    assert picked(inventory, claim(exactly("req", 1, f'device.driver == "{GPU}"'))) == ["whole"]
