"""Consumable capacity: policies, shares, and devices that change between shared and dedicated."""

from __future__ import annotations

from typing import Any

import pytest

from drakit.allocator import Inventory, allocate, tell
from drakit.allocator.inventory.capacity import consumed_amount, consumption
from drakit.api import DeviceCapacity, ResourceClaim, from_plain
from drakit.base.quantity import Quantity
from tests.allocator.picks import gates_without, picked, run
from tests.builders.objects import GPU, claim_of, device, every, exactly, held, inventory_of, slice_of

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
    inventory = inventory_of(slice_of(shared()), used=[old])
    assert picked(inventory, claim_of(wants("4"))) == ["nic"]
    assert picked(inventory, claim_of(wants("5"))) is None
    assert picked(inventory, claim_of(wants("2"), wants("2") | {"name": "other"})) == ["nic", "nic"]
    assert picked(inventory, claim_of(wants("2"), wants("3") | {"name": "other"})) is None


def test_one_request_takes_a_device_once() -> None:
    assert picked(inventory_of(slice_of(shared())), claim_of(wants("1", 2))) is None


def test_the_result_has_a_share_id_and_the_consumed_amounts_even_of_zero() -> None:
    got = run(inventory_of(slice_of(shared(default="0"))), claim_of(exactly()))
    (result,) = got.allocations[0].devices.results  # type: ignore[union-attr]
    assert result.share_id == "share"
    assert result.consumed_capacity == {"bandwidth": Quantity.parse("0")}


def test_on_a_dedicated_device_a_requested_amount_is_a_filter() -> None:
    devices = [device(f"d{size}", capacity={"bandwidth": {"value": str(size)}}) for size in (2, 8)]
    got = run(inventory_of(slice_of(*devices)), claim_of(wants("4")))
    (result,) = got.allocations[0].devices.results  # type: ignore[union-attr]
    assert (result.device, result.share_id, result.consumed_capacity) == ("d8", None, {})


def test_a_shared_device_without_capacity_can_be_had_without_end() -> None:
    unlimited = device("free", allowMultipleAllocations=True)
    shares = [held(f"old-{n}", "free", shareID=f"s{n}") for n in range(5)]
    got = run(inventory_of(slice_of(unlimited), used=shares), claim_of(exactly()))
    (result,) = got.allocations[0].devices.results  # type: ignore[union-attr]
    assert (result.device, result.share_id, result.consumed_capacity) == ("free", "share", {})


def test_a_dedicated_device_turned_shared_stays_dedicated_until_it_is_released() -> None:
    inventory = inventory_of(slice_of(shared()), used=[held("old", "nic")])
    assert picked(inventory, claim_of(wants("1"))) is None
    inventory.remove_claim("uid-old")
    assert picked(inventory, claim_of(wants("1"))) == ["nic"]


@pytest.mark.parametrize("consumed", [{}, {"consumedCapacity": {"bandwidth": "1"}}])
def test_a_shared_device_turned_dedicated_is_not_given_while_a_share_is_left(consumed: dict[str, Any]) -> None:
    dedicated = device("nic", capacity={"bandwidth": {"value": "10"}})
    inventory = inventory_of(slice_of(dedicated), used=[held("old", "nic", shareID="s", **consumed)])
    assert picked(inventory, claim_of(wants("1"))) is None
    inventory.remove_claim("uid-old")
    assert picked(inventory, claim_of(wants("1"))) == ["nic"]


def test_turned_back_to_shared_the_left_share_counts_again() -> None:
    old = held("old", "nic", shareID="s", consumedCapacity={"bandwidth": "8"})
    inventory = inventory_of(slice_of(device("nic", capacity={"bandwidth": {"value": "10"}})), used=[old])
    inventory.put_slice(slice_of(shared(), generation=2))
    assert picked(inventory, claim_of(wants("2"))) == ["nic"]
    assert picked(inventory, claim_of(wants("3"))) is None


def test_a_policy_that_changes_later_does_not_change_what_is_recorded() -> None:
    old = held("old", "nic", shareID="s", consumedCapacity={"bandwidth": "3"})
    inventory = inventory_of(slice_of(shared(default="5")), used=[old])
    assert picked(inventory, claim_of(exactly())) == ["nic"]
    inventory.put_slice(slice_of(shared(default="8"), generation=2))
    assert picked(inventory, claim_of(exactly())) is None


def test_without_the_gate_a_share_is_the_whole_device_and_amounts_are_refused() -> None:
    gates = gates_without("DRAConsumableCapacity")
    old = held("old", "nic", shareID="s", consumedCapacity={"bandwidth": "1"})
    assert picked(inventory_of(slice_of(shared()), used=[old], gates=gates), claim_of(exactly())) is None
    got = run(inventory_of(slice_of(shared()), gates=gates), claim_of(wants("1")))
    assert "the DRAConsumableCapacity feature is disabled" in got.message  # type: ignore[union-attr]


def test_selectors_see_whether_a_device_can_be_shared() -> None:
    inventory = inventory_of(slice_of(device("whole"), shared()))
    assert picked(inventory, claim_of(exactly("req", 1, "device.allowMultipleAllocations == true"))) == ["nic"]
    assert picked(inventory, claim_of(exactly("req", 1, f'device.driver == "{GPU}"'))) == ["whole"]


HALVES = {"default": "500m", "validRange": {"min": "500m", "max": "2500m", "step": "500m"}}


@pytest.mark.parametrize(
    ("requested", "taken"),
    [
        (None, "500m"),
        ("100m", "500m"),
        ("600m", "1"),
        ("1", "1"),
        ("1001m", "1500m"),
        ("2500m", "2500m"),
        ("2600m", None),
    ],
)
def test_steps_and_defaults_are_exact_below_one(requested: str | None, taken: str | None) -> None:
    capacity = from_plain(DeviceCapacity, {"value": "4", "requestPolicy": HALVES})
    amount = consumed_amount(Quantity.parse(requested) if requested else None, capacity)
    assert amount == (Quantity.parse(taken) if taken else None)


def test_half_steps_add_up_to_the_capacity_and_no_further() -> None:
    nic = device("nic", allowMultipleAllocations=True, capacity={"bandwidth": {"value": "1", "requestPolicy": HALVES}})
    old = held("old", "nic", shareID="s", consumedCapacity={"bandwidth": "500m"})
    inventory = inventory_of(slice_of(nic), used=[old])
    assert picked(inventory, claim_of(wants("400m"))) == ["nic"]
    assert picked(inventory, claim_of(wants("600m"))) is None


def test_a_negative_request_never_reaches_the_ledger() -> None:
    inventory = inventory_of(slice_of(shared()))
    assert picked(inventory, claim_of(wants("-1M"))) is None
    told = reasons_of(inventory, claim_of(wants("-1M")))
    assert "capacity bandwidth: -1M is asked for, which is less than nothing" in told


@pytest.mark.parametrize(
    "policy",
    [{"default": "-1"}, {"default": "-1", "validRange": {"min": "-1"}}, {"default": "-1", "validValues": ["-1"]}],
)
def test_a_negative_minimum_or_default_never_reaches_the_ledger(policy: dict[str, Any]) -> None:
    nic = device("nic", allowMultipleAllocations=True, capacity={"bandwidth": {"value": "8", "requestPolicy": policy}})
    inventory = inventory_of(slice_of(nic))
    assert picked(inventory, claim_of(exactly())) is None
    assert "-1 is what an allocation takes by default, which is less than nothing" in reasons_of(
        inventory, claim_of(exactly())
    )
    if "validRange" in policy:
        assert picked(inventory, claim_of(wants("0"))) == ["nic"]


def test_a_negative_amount_in_a_status_gives_nothing_to_others() -> None:
    used = [
        held("first", "nic", shareID="s", consumedCapacity={"bandwidth": "-1M"}),
        held("second", "nic", shareID="t", consumedCapacity={"bandwidth": "10"}),
    ]
    assert picked(inventory_of(slice_of(shared()), used=used), claim_of(wants("1"))) is None


@pytest.mark.parametrize("published", ["bandwidth", f"{GPU}/bandwidth"])
@pytest.mark.parametrize("asked", ["bandwidth", f"{GPU}/bandwidth"])
@pytest.mark.parametrize("recorded", ["bandwidth", f"{GPU}/bandwidth"])
def test_a_capacity_with_and_without_the_domain_of_its_driver_is_one(published: str, asked: str, recorded: str) -> None:
    capacity = {published: {"value": "10", "requestPolicy": {"default": "1"}}}
    nic = device("nic", allowMultipleAllocations=True, capacity=capacity)
    old = held("old", "nic", shareID="s", consumedCapacity={recorded: "6"})
    inventory = inventory_of(slice_of(nic), used=[old])
    got = run(inventory, claim_of(exactly("req", 1, capacity={"requests": {asked: "4"}})))
    (result,) = got.allocations[0].devices.results  # type: ignore[union-attr]
    assert result.consumed_capacity == {published: Quantity.parse("4")}
    assert picked(inventory, claim_of(exactly("req", 1, capacity={"requests": {asked: "5"}}))) is None


def test_a_domain_of_another_driver_is_another_capacity() -> None:
    inventory = inventory_of(slice_of(shared()))
    other = {"requests": {"nic.example.com/bandwidth": "1"}}
    assert picked(inventory, claim_of(exactly("req", 1, capacity=other))) is None


def test_a_device_that_publishes_a_capacity_under_both_names_is_refused_with_the_reason() -> None:
    capacity = {"bandwidth": {"value": "10"}, f"{GPU}/bandwidth": {"value": "8"}}
    inventory = inventory_of(slice_of(device("nic", allowMultipleAllocations=True, capacity=capacity)))
    assert picked(inventory, claim_of(exactly())) is None
    assert f"publishes capacity {GPU}/bandwidth twice" in reasons_of(inventory, claim_of(exactly()))


def test_a_request_that_names_a_capacity_under_both_names_is_refused_with_the_reason() -> None:
    both = exactly("req", 1, capacity={"requests": {"bandwidth": "1", f"{GPU}/bandwidth": "1"}})
    inventory = inventory_of(slice_of(shared()))
    assert picked(inventory, claim_of(both)) is None
    assert f"the request names capacity {GPU}/bandwidth twice" in reasons_of(inventory, claim_of(both))


def test_admin_access_on_an_exhausted_shared_device_works() -> None:
    old = held("old", "nic", shareID="s", consumedCapacity={"bandwidth": "10"})
    inventory = inventory_of(slice_of(shared()), used=[old])
    assert picked(inventory, claim_of(exactly())) is None
    assert picked(inventory, claim_of(exactly(adminAccess=True))) == ["nic"]


def test_admin_access_prefers_a_shared_device_with_room() -> None:
    old = held("old", "a", shareID="s", consumedCapacity={"bandwidth": "10"})
    inventory = inventory_of(slice_of(shared("a"), shared("b")), used=[old])
    assert picked(inventory, claim_of(exactly(adminAccess=True))) == ["b"]


def test_all_with_a_device_that_the_policy_makes_ineligible_says_so() -> None:
    policy = {"default": "2Gi", "validValues": ["2Gi"]}
    nic = device(
        "nic", allowMultipleAllocations=True, capacity={"bandwidth": {"value": "8Gi", "requestPolicy": policy}}
    )
    inventory = inventory_of(slice_of(nic))
    asked = claim_of(every(capacity={"requests": {"bandwidth": "4Gi"}}))
    assert picked(inventory, asked) is None
    assert "the request policy of capacity bandwidth does not allow 4Gi" in reasons_of(inventory, asked)


def reasons_of(inventory: Inventory, *claims: ResourceClaim) -> str:
    got = allocate(inventory, "node-a", claims, explain=True)
    return "\n".join(tell(got.reasons))  # type: ignore[union-attr, arg-type]
