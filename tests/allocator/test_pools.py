"""Which devices a node sees: access, generations, completeness, validity."""

from __future__ import annotations

from typing import Any

import pytest

from drakit.allocator import NodeError, Unsatisfiable
from tests.allocator.picks import gates_without, picked, run
from tests.builders.objects import claim_of, device, every, exactly, held, inventory_of, node_of, slice_of

ZONE = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z1"]}]}]}
ONE = claim_of(exactly())
COUNTERS = [{"name": "set", "counters": {"mem": {"value": "8"}}}]
COUNTED = {"consumesCounters": [{"counterSet": "set", "counters": {"mem": {"value": "4"}}}]}


def test_a_slice_of_another_node_is_not_seen() -> None:
    assert picked(inventory_of(slice_of(device("a"), nodeName="node-b")), ONE) is None


def test_a_slice_for_all_nodes_is_seen_by_a_node_nobody_told_us_of() -> None:
    assert picked(inventory_of(slice_of(device("a"), allNodes=True)), ONE, node="stranger") == ["a"]


def test_a_node_selector_goes_by_the_labels_of_the_moment() -> None:
    inventory = inventory_of(slice_of(device("a"), nodeSelector=ZONE))
    assert picked(inventory, ONE) is None
    inventory.put_node(node_of(zone="z1"))
    assert picked(inventory, ONE) == ["a"]
    inventory.remove_node("node-a")
    assert picked(inventory, ONE) is None


def test_devices_may_select_nodes_one_by_one() -> None:
    devices = [device("b", nodeName="node-b"), device("a", nodeName="node-a"), device("c", allNodes=True)]
    inventory = inventory_of(slice_of(*devices, perDeviceNodeSelection=True))
    assert picked(inventory, claim_of(exactly(count=2))) == ["a", "c"]
    assert picked(inventory, claim_of(exactly(count=2)), node="node-b") == ["b", "c"]
    assert picked(inventory, claim_of(every()), node="node-c") == ["c"]


def test_a_slice_that_says_nothing_of_nodes_is_ignored() -> None:
    assert picked(inventory_of(slice_of(device("a"), nodeName="")), ONE) is None


def test_only_the_highest_generation_counts() -> None:
    old = slice_of(device("old"), name="a", generation=1)
    new = slice_of(device("new"), name="b", generation=2)
    assert picked(inventory_of(new, old), claim_of(exactly())) == ["new"]
    assert picked(inventory_of(old, new), claim_of(exactly(count=2))) is None


def test_an_incomplete_pool_serves_no_request_and_does_not_hide_others() -> None:
    part = slice_of(device("a"), name="a", count=2)
    assert isinstance(run(inventory_of(part), ONE), Unsatisfiable)
    assert picked(inventory_of(part, slice_of(device("b"), name="b", pool="whole")), ONE) == ["b"]


def test_slices_of_other_nodes_complete_a_pool() -> None:
    mine = slice_of(device("a"), name="a", count=2)
    theirs = slice_of(device("b"), name="b", count=2, nodeName="node-b")
    assert picked(inventory_of(mine, theirs), claim_of(every())) == ["a"]


def test_a_newer_generation_on_other_nodes_makes_an_incomplete_pool_obsolete() -> None:
    mine = slice_of(device("a"), name="a", count=2)
    newer = slice_of(device("b"), name="b", count=2, nodeName="node-b", generation=2)
    inventory = inventory_of(mine, newer, slice_of(device("c"), name="c", pool="other"))
    # An obsolete pool is not there at all: it does not stand in the way of All.
    assert picked(inventory, claim_of(every())) == ["c"]


def test_a_pool_that_is_whole_on_the_node_is_used_whatever_other_nodes_publish() -> None:
    newer = slice_of(device("b"), name="b", nodeName="node-b", generation=2)
    assert picked(inventory_of(slice_of(device("a"), name="a"), newer), ONE) == ["a"]


@pytest.mark.parametrize(
    ("slices", "reason"),
    [
        ([slice_of(device("a"), device("a"))], "duplicate device name a"),
        (
            [
                slice_of(device("a", **COUNTED), name="a", count=3),
                slice_of(name="b", count=3, sharedCounters=COUNTERS),
                slice_of(name="c", count=3, sharedCounters=COUNTERS),
            ],
            "duplicate counter set name set",
        ),
        ([slice_of(device("a", **COUNTED))], "counter set set not found"),
        (
            [
                slice_of(device("a", **COUNTED), name="a", count=2),
                slice_of(name="b", count=2, sharedCounters=[{"name": "set", "counters": {"sm": {"value": "1"}}}]),
            ],
            "counter mem not found in counter set set",
        ),
    ],
)
def test_an_invalid_pool_is_named_when_nothing_else_fits(slices: list[Any], reason: str) -> None:
    got = run(inventory_of(*slices), ONE)
    assert isinstance(got, NodeError)
    assert got.message == f"invalid resource pools were encountered: gpu.example.com/pool ({reason})"
    good = slice_of(device("good"), name="good", pool="good")
    assert picked(inventory_of(*slices, good), ONE) == ["good"]


def test_counters_are_used_up_by_devices_of_other_nodes_too() -> None:
    slices = [
        slice_of(device("a", **COUNTED), name="a", count=3),
        slice_of(device("b", **COUNTED), device("c", **COUNTED), name="b", count=3, nodeName="node-b"),
        slice_of(name="c", count=3, sharedCounters=COUNTERS, allNodes=True),
    ]
    inventory = inventory_of(*slices)
    assert picked(inventory, ONE) == ["a"]
    inventory.put_claim(held("one", "b"))
    assert picked(inventory, ONE) == ["a"]
    inventory.put_claim(held("two", "c"))
    assert picked(inventory, ONE) is None


def test_without_partitions_counters_are_not_read_and_devices_that_need_them_not_given() -> None:
    gates = gates_without("DRAPartitionableDevices")
    inventory = inventory_of(slice_of(device("a", **COUNTED), device("b")), gates=gates)
    assert picked(inventory, ONE) == ["b"]
    assert picked(inventory, claim_of(every())) is None


def test_counters_of_an_unusable_pool_are_seen_from_every_node() -> None:
    """A pool on another node is no business of this one, unless it announces counters and is broken."""
    broken = slice_of(name="b", count=2, sharedCounters=COUNTERS, nodeName="node-b", pool="theirs")
    inventory = inventory_of(slice_of(device("a")), broken)
    assert picked(inventory, ONE) == ["a"]
    assert isinstance(run(inventory, claim_of(every())), NodeError)
    inventory.remove_slice("b")
    assert picked(inventory, claim_of(every())) == ["a"]
