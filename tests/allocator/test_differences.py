"""Where the specification and the code of Kubernetes v1.36.4 differ, the specification counts.

Each test is named after one of the six differences that concern the allocator.
"""

from __future__ import annotations

import pytest

from drakit.allocator import NodeError, Unsatisfiable
from tests.allocator.picks import names, picked, run
from tests.builders.objects import claim_of, device, every, exactly, held, inventory_of, slice_of

VALUE = "gpu.example.com/value"


def test_1_distinct_attribute_differs_inside_one_request_too() -> None:
    devices = [device(f"dev-{n}", attributes={"value": value}) for n, value in enumerate([1, 2, 1, 3])]
    wanted = claim_of(exactly(count=3), constraints=[{"distinctAttribute": VALUE}])
    assert picked(inventory_of(slice_of(*devices)), wanted) == ["dev-0", "dev-1", "dev-3"]


def test_2_taking_a_device_back_restores_the_intersection_of_list_attributes() -> None:
    devices = [device(f"dev-{n}", attributes={"value": value}) for n, value in enumerate([[1, 2], [1], [2], [2]], 1)]
    wanted = claim_of(exactly(count=3), constraints=[{"matchAttribute": VALUE}])
    assert picked(inventory_of(slice_of(*devices)), wanted) == ["dev-1", "dev-3", "dev-4"]


SHARED = {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "8", "requestPolicy": {"default": "4"}}}}


def test_3_all_fails_when_a_matching_device_that_is_large_enough_is_full_now() -> None:
    devices = [device("dev-0", **SHARED), device("dev-1", **SHARED)]
    full = held("old", "dev-0", shareID="s", consumedCapacity={"memory": "6"})
    wanted = claim_of(every(capacity={"requests": {"memory": "4"}}))
    assert picked(inventory_of(slice_of(*devices)), wanted) == ["dev-0", "dev-1"]
    assert isinstance(run(inventory_of(slice_of(*devices), used=[full]), wanted), Unsatisfiable)


def test_3_all_leaves_out_a_device_that_is_too_small_for_the_request() -> None:
    small = device("small", capacity={"memory": {"value": "2"}})
    large = device("large", capacity={"memory": {"value": "8"}})
    wanted = claim_of(every(capacity={"requests": {"memory": "4"}}))
    assert picked(inventory_of(slice_of(small, large)), wanted) == ["large"]


@pytest.mark.parametrize(
    ("broken", "word"),
    [
        (slice_of(device("dev-9"), name="other", pool="other", count=2), "being updated"),
        (slice_of(device("dev-9"), device("dev-9"), name="other", pool="other"), "invalid"),
    ],
)
def test_4_all_with_an_incomplete_or_invalid_pool_fails_this_node_only(broken: object, word: str) -> None:
    inventory = inventory_of(slice_of(device("dev-0")), broken)  # type: ignore[arg-type]
    got = run(inventory, claim_of(every()))
    assert isinstance(got, NodeError)
    assert f"asks for all devices, but resource pool gpu.example.com/other is currently {word}" in got.message
    elsewhere = slice_of(device("dev-1"), name="elsewhere", pool="elsewhere", nodeName="node-b")
    inventory.put_slice(elsewhere)
    assert names(run(inventory, claim_of(every()), node="node-b")) == ["dev-1"]


def test_5_slices_of_a_generation_that_disagree_on_their_count_make_the_pool_invalid() -> None:
    inventory = inventory_of(slice_of(device("dev-0"), name="a", count=2), slice_of(device("dev-1"), name="b", count=3))
    got = run(inventory, claim_of(exactly()))
    assert isinstance(got, NodeError)
    assert "disagree on resourceSliceCount: 2, 3" in got.message


def test_5_more_slices_than_their_count_make_the_pool_invalid() -> None:
    inventory = inventory_of(slice_of(device("dev-0"), name="a"), slice_of(device("dev-1"), name="b"))
    got = run(inventory, claim_of(exactly()))
    assert isinstance(got, NodeError)
    assert "2 slices, more than its resourceSliceCount 1" in got.message


def test_6_a_share_without_consumed_capacity_does_not_charge_the_counters_again() -> None:
    counted = {"consumesCounters": [{"counterSet": "set", "counters": {"mem": {"value": "8"}}}]}
    counters = [{"name": "set", "counters": {"mem": {"value": "8"}}}]
    slices = [
        slice_of(
            device("dev-0", allowMultipleAllocations=True, **counted), device("dev-1", **counted), name="a", count=2
        ),
        slice_of(name="b", count=2, sharedCounters=counters),
    ]
    inventory = inventory_of(*slices, used=[held("old", "dev-0", shareID="s")])
    assert picked(inventory, claim_of(exactly())) == ["dev-0"]
    assert picked(inventory, claim_of(exactly(count=2))) is None
