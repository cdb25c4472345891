"""Which nodes need another look."""

from __future__ import annotations

import pytest

from drakit.allocator import Allocator, Inventory
from drakit.api import Node, ObjectMeta
from drakit.scheduler.dynamicresources.state.suitable import SuitableNodes, SuitableNodesByPlan
from drakit.scheduler.framework import NodeInfo
from tests.builders.objects import claim_of, device, exactly, held, inventory_of, slice_of


def info(name: str) -> NodeInfo:
    return NodeInfo(Node(metadata=ObjectMeta(name=name)))


@pytest.fixture
def known() -> SuitableNodes:
    """After a first attempt, which only finds out whom it follows."""
    made = SuitableNodes()
    made.follow([])
    return made


def test_a_node_is_known_until_its_devices_or_it_itself_change() -> None:
    changed: list[str] = []
    known, a, b = SuitableNodes(), info("a"), info("b")
    known.follow(changed)
    known.follow(changed)
    known.add([a, b])
    assert known.rest([a, b]) == []
    changed.append("a")
    known.follow(changed)
    assert known.rest([a, b]) == [a]
    newer = info("b")
    assert known.rest([b, newer]) == [newer]
    known.add([newer])
    assert known.rest([b, newer]) == [b]


def test_where_all_nodes_change_with_every_pod_nothing_is_kept(known: SuitableNodes) -> None:
    node = info("a")
    for _ in range(2):
        known.follow(list[str]())
        known.add([node])
        assert known.rest([node]) == [node]


def test_claims_that_ask_for_the_same_share_what_is_known_on_one_inventory() -> None:
    inventory, node = inventory_of(slice_of(device("a"), nodeName="node-a")), info("node-a")
    plans = SuitableNodesByPlan()

    def rest(there: Inventory, count: int = 1) -> list[NodeInfo]:
        allocator = Allocator(there, [claim_of(exactly(count=count))], snapshot=False)
        return list(plans.of(allocator).rest([node]))

    for _ in range(2):
        plans.of(Allocator(inventory, [claim_of(exactly())], snapshot=False)).add([node])
    assert (rest(inventory), rest(inventory, 2)) == ([], [node])
    inventory.put_claim(held("c", "a"))
    assert rest(inventory) == [node]
    assert rest(inventory.fork()) == [node]
