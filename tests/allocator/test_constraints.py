"""matchAttribute and distinctAttribute over scalars and lists, limited to requests or sub-requests."""

from __future__ import annotations

from typing import Any

import pytest

from drakit.allocator import AllocationError
from tests.allocator.picks import gates_without, picked, run
from tests.builders.objects import GPU, ROOT, claim_of, device, exactly, first_of, inventory_of, slice_of, sub

VALUE = f"{GPU}/value"


def valued(*values: Any, name: str = "value") -> Any:
    devices = [device(f"d{n}", attributes={} if value is None else {name: value}) for n, value in enumerate(values)]
    return slice_of(*devices)


def match(attribute: str = VALUE, *requests: str) -> dict[str, Any]:
    return {"matchAttribute": attribute, **({"requests": list(requests)} if requests else {})}


def distinct(attribute: str = VALUE, *requests: str) -> dict[str, Any]:
    return {"distinctAttribute": attribute, **({"requests": list(requests)} if requests else {})}


@pytest.mark.parametrize(
    ("values", "count", "expected"),
    [
        ((0, 1, 0, 1), 2, ["d0", "d2"]),
        ((0, 1, 1), 2, ["d1", "d2"]),
        ((None, 1, 1), 2, ["d1", "d2"]),
        ((None,), 1, None),
        (("1", 1), 2, None),
        ((True, 1), 2, None),
        (([1, 2], [2, 3], [2]), 3, ["d0", "d1", "d2"]),
        (([1, 2], [2, 3], [3, 1]), 3, None),
        (([1, 2], 2), 2, ["d0", "d1"]),
        (([1], [1, 9], [2], [2, 9], [3], [3, 9]), 3, ["d1", "d3", "d5"]),
        ((1, [1, 9], 2, [2, 9]), 2, ["d0", "d1"]),
        ((["1"], [1]), 2, None),
    ],
)
def test_match_takes_devices_that_share_a_value(values: Any, count: int, expected: Any) -> None:
    assert picked(inventory_of(valued(*values)), claim_of(exactly(count=count), constraints=[match()])) == expected


@pytest.mark.parametrize(
    ("values", "count", "expected"),
    [
        ((0, 0, 1), 2, ["d0", "d2"]),
        ((0, 0), 2, None),
        ((None, 0, 1), 2, ["d1", "d2"]),
        (("1", 1), 2, ["d0", "d1"]),
        (([1, 2], [2, 3], [3, 4]), 2, ["d0", "d2"]),
        (([1, 2], 2, 3), 2, ["d0", "d2"]),
    ],
)
def test_distinct_takes_devices_that_share_none(values: Any, count: int, expected: Any) -> None:
    assert picked(inventory_of(valued(*values)), claim_of(exactly(count=count), constraints=[distinct()])) == expected


def test_an_attribute_of_another_domain_needs_its_full_name() -> None:
    assert picked(inventory_of(valued("a", "a", name=ROOT)), claim_of(exactly(count=2), constraints=[match(ROOT)])) == [
        "d0",
        "d1",
    ]
    bare = inventory_of(valued("a", "a", name="pcieRoot"))
    assert picked(bare, claim_of(exactly(count=2), constraints=[match(ROOT)])) is None


def test_a_constraint_concerns_only_the_requests_that_it_names() -> None:
    inventory = inventory_of(valued(0, 1, 0, 1))
    wanted = claim_of(exactly("x"), exactly("y"), exactly("z"), constraints=[match(VALUE, "x", "z")])
    assert picked(inventory, wanted) == ["d0", "d1", "d2"]


def test_a_constraint_may_name_one_alternative() -> None:
    inventory = inventory_of(valued(0, 1, 1))
    both = first_of("x", sub("two", 2), sub("one"))
    assert picked(inventory, claim_of(both, constraints=[match(VALUE, "x/two")])) == ["d1", "d2"]
    assert picked(inventory, claim_of(both, constraints=[match(VALUE, "x/one")])) == ["d0", "d1"]
    three = first_of("x", sub("three", 3), sub("one"))
    assert picked(inventory, claim_of(three, constraints=[match(VALUE, "x")])) == ["d0"]


def test_a_shared_device_is_not_taken_twice_when_devices_must_differ() -> None:
    shared = device("s", allowMultipleAllocations=True, attributes={"value": 1})
    inventory = inventory_of(slice_of(shared, device("t", attributes={"value": 2})))
    assert picked(inventory, claim_of(exactly("x"), exactly("y"))) == ["s", "s"]
    assert picked(inventory, claim_of(exactly("x"), exactly("y"), constraints=[distinct()])) == ["s", "t"]


def test_each_claim_has_constraints_of_its_own() -> None:
    inventory = inventory_of(valued(0, 1))
    claims = [claim_of(exactly(), name=name, constraints=[match()]) for name in ("one", "two")]
    assert picked(inventory, *claims) == ["d0", "d1"]


def test_without_list_attributes_a_list_has_no_value_to_compare() -> None:
    inventory = inventory_of(valued([1], [1]), gates=gates_without("DRAListTypeAttributes"))
    assert picked(inventory, claim_of(exactly(), constraints=[match()])) == ["d0"]
    assert picked(inventory, claim_of(exactly(count=2), constraints=[match()])) is None
    assert picked(inventory, claim_of(exactly(), constraints=[distinct()])) == ["d0"]
    assert picked(inventory, claim_of(exactly(count=2), constraints=[distinct()])) is None


def test_distinct_is_refused_where_no_gate_brings_it() -> None:
    without = gates_without("DRAConsumableCapacity", "DRADeviceBindingConditions", "DRAListTypeAttributes")
    wanted = claim_of(exactly(), constraints=[distinct()])
    got = run(inventory_of(valued(1, 2), gates=without), wanted)
    assert isinstance(got, AllocationError)
    assert got.message == (
        "claim default/claim, constraint #0: "
        "distinctAttribute is used, but the DRAConsumableCapacity feature is disabled"
    )
    assert picked(inventory_of(valued(1, 2), gates=gates_without("DRAConsumableCapacity")), wanted) == ["d0"]


def test_a_constraint_that_matches_and_differs_at_once_is_refused_with_words_that_fit() -> None:
    got = run(inventory_of(valued(1, 2)), claim_of(exactly(), constraints=[{**match(), **distinct()}]))
    assert isinstance(got, AllocationError)
    assert "constraint #0: matchAttribute and distinctAttribute exclude each other, but both are set" in got.message
