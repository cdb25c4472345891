"""The inventory as objects come and go, and its forks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from drakit.allocator import Allocator, Inventory, NodeError, Unsatisfiable
from drakit.allocator.inventory.taintrules import TaintRules
from drakit.api import Partial, ResourceClaimTemplate
from drakit.base.errors import UsageError
from drakit.base.gates import FeatureGates
from drakit.manifests import read_manifests
from drakit.validation import Context
from tests.allocator.picks import gates_without, picked, run
from tests.builders.objects import (
    GPU,
    claim_of,
    class_of,
    device,
    every,
    exactly,
    held,
    inventory_of,
    node_of,
    slice_of,
    taint_rule,
)

ONE = claim_of(exactly())
TWO = [device("a"), device("b")]


def test_updating_one_slice_leaves_the_views_of_other_pools_as_they_are() -> None:
    inventory = inventory_of(slice_of(device("a"), name="1", pool="one"), slice_of(device("b"), name="2", pool="two"))
    one, two = inventory.views("node-a")
    inventory.put_slice(slice_of(device("c"), name="2", pool="two", generation=2))
    again, changed = inventory.views("node-a")
    assert again is one
    assert changed is not two
    assert changed.devices[0].name == "c"


def test_a_slice_that_moves_to_another_pool_leaves_its_old_one() -> None:
    inventory = inventory_of(slice_of(device("a"), name="1", pool="one"))
    inventory.put_slice(slice_of(device("b"), name="1", pool="two"))
    assert [view.key[1] for view in inventory.views("node-a")] == ["two"]
    assert picked(inventory, ONE) == ["b"]


def test_a_slice_that_moves_to_another_node_is_gone_from_the_first() -> None:
    inventory = inventory_of(slice_of(device("a")))
    inventory.put_slice(slice_of(device("a"), nodeName="node-b"))
    assert picked(inventory, ONE) is None
    assert picked(inventory, ONE, node="node-b") == ["a"]


def test_removing_what_is_not_there_changes_nothing() -> None:
    inventory = inventory_of(slice_of(device("a")))
    inventory.remove_slice("nothing")
    inventory.remove_claim("nobody")
    inventory.remove_rule("none")
    inventory.remove_class("none")
    assert picked(inventory, ONE) == ["a"]


def test_nodes_alike_share_what_is_known_of_their_devices() -> None:
    inventory = inventory_of(slice_of(*TWO), slice_of(*TWO, name="other", pool="other", nodeName="node-b"))
    ((one,), (two,)) = inventory.views("node-a"), inventory.views("node-b")
    assert one is not two
    assert one.content is two.content


def test_an_allocator_keeps_the_state_that_it_was_made_for() -> None:
    inventory = inventory_of(slice_of(*TWO))
    allocator = Allocator(inventory, [ONE])
    inventory.put_claim(held("old", "a", "b"))
    assert list(allocator.suitable(["node-a"])) == ["node-a"]
    assert list(Allocator(inventory, [ONE]).suitable(["node-a"])) == []


def test_the_answer_follows_every_change_of_use() -> None:
    inventory = inventory_of(slice_of(*TWO))
    assert picked(inventory, ONE) == ["a"]
    inventory.put_claim(held("old", "a"))
    assert picked(inventory, ONE) == ["b"]
    inventory.remove_claim("uid-old")
    assert picked(inventory, ONE) == ["a"]


def test_an_allocation_in_flight_counts_until_it_is_stored_or_given_up() -> None:
    inventory = inventory_of(slice_of(*TWO))
    pending = held("new", "a")
    assert pending.status.allocation
    inventory.begin_allocation(pending, pending.status.allocation)
    assert picked(inventory, ONE) == ["b"]
    inventory.end_allocation("uid-new")
    assert picked(inventory, ONE) == ["a"]


class TestWhatIf:
    """The same call on a fork with something added, removed or tainted."""

    def test_a_node_more(self) -> None:
        inventory = inventory_of(slice_of(device("a")), used=[held("old", "a")])
        fork = inventory.fork()
        fork.put_node(node_of("node-b"))
        fork.put_slice(slice_of(device("b"), name="new", pool="new", nodeName="node-b"))
        assert picked(fork, ONE, node="node-b") == ["b"]
        assert isinstance(run(inventory, ONE, node="node-b"), Unsatisfiable)
        assert "node-b" not in inventory.nodes

    def test_a_claim_less(self) -> None:
        inventory = inventory_of(slice_of(device("a")), used=[held("old", "a")])
        fork = inventory.fork()
        fork.remove_claim("uid-old")
        assert picked(fork, ONE) == ["a"]
        assert picked(inventory, ONE) is None

    def test_a_taint_more(self) -> None:
        inventory = inventory_of(slice_of(*TWO))
        fork = inventory.fork()
        fork.put_rule(taint_rule("broken", {"device": "a"}))
        assert picked(fork, ONE) == ["b"]
        assert picked(inventory, ONE) == ["a"]

    def test_the_origin_may_change_as_well(self) -> None:
        inventory = inventory_of(slice_of(*TWO))
        fork = inventory.fork()
        inventory.remove_slice("slice")
        assert picked(fork, ONE) == ["a"]
        assert picked(inventory, ONE) is None


class TestTaintRules:
    @pytest.mark.parametrize(
        "selector",
        [
            {},
            {"driver": GPU},
            {"pool": "pool"},
            {"device": "a"},
            {"driver": GPU, "pool": "pool", "device": "a"},
            {"deviceClassName": "a-only"},
            {"selectors": [{"cel": {"expression": f'device.attributes["{GPU}"].name == "a"'}}]},
        ],
    )
    def test_a_rule_taints_what_all_its_criteria_select(self, selector: dict[str, Any]) -> None:
        only = class_of("a-only", f'device.attributes["{GPU}"].?name.orValue("") == "a"')
        devices = [device("a", attributes={"name": "a"})]
        inventory = inventory_of(slice_of(*devices), classes=[class_of(), only])
        inventory.put_rule(taint_rule("broken", selector))
        assert picked(inventory, ONE) is None
        assert picked(inventory, claim_of(exactly(tolerations=[{"key": "broken", "operator": "Exists"}]))) == ["a"]
        inventory.remove_rule("broken")
        assert picked(inventory, ONE) == ["a"]

    @pytest.mark.parametrize(
        "selector",
        [
            None,
            {"driver": "other"},
            {"pool": "other"},
            {"device": "b"},
            {"driver": GPU, "device": "b"},
            {"deviceClassName": "not-there"},
            {"selectors": [{"cel": {"expression": f'device.attributes["{GPU}"].missing == "a"'}}]},
        ],
    )
    def test_a_rule_leaves_everything_else_alone(self, selector: dict[str, Any] | None) -> None:
        inventory = inventory_of(slice_of(device("a")))
        inventory.put_rule(taint_rule("broken", selector))
        assert picked(inventory, ONE) == ["a"]

    def test_an_effect_that_does_not_keep_away_is_ignored(self) -> None:
        inventory = inventory_of(slice_of(device("a")))
        inventory.put_rule(taint_rule("odd", {}, effect="None"))
        assert picked(inventory, ONE) == ["a"]

    def test_a_rule_that_names_a_class_follows_the_class(self) -> None:
        inventory = inventory_of(slice_of(device("a")))
        inventory.put_rule(taint_rule("broken", {"deviceClassName": "later"}))
        assert picked(inventory, ONE) == ["a"]
        inventory.put_class(class_of("later"))
        assert picked(inventory, ONE) is None
        inventory.put_class(class_of("later", "false"))
        assert picked(inventory, ONE) == ["a"]

    def test_rules_add_to_the_taints_of_the_slice_in_order_of_their_names(self) -> None:
        own = {"key": "own", "effect": "NoSchedule"}
        inventory = inventory_of(slice_of(device("a", taints=[own])))
        inventory.put_rule(taint_rule("2", {}, key="second"))
        inventory.put_rule(taint_rule("1", {}, key="first"))
        (view,) = inventory.views("node-a")
        assert [taint.key for taint in view.content.taints[0]] == ["own", "first", "second"]

    def test_a_slice_published_later_is_tainted_too(self) -> None:
        inventory = inventory_of()
        inventory.put_rule(taint_rule("broken", {}))
        inventory.put_slice(slice_of(device("a")))
        assert picked(inventory, ONE) is None

    @pytest.mark.parametrize("gate", ["DRADeviceTaintRules", "DRADeviceTaints"])
    def test_without_the_gate_rules_do_nothing(self, gate: str) -> None:
        inventory = inventory_of(slice_of(device("a")), gates=gates_without(gate))
        inventory.put_rule(taint_rule("broken", {}))
        assert picked(inventory, ONE) == ["a"]

    def test_without_rules_a_device_keeps_the_very_taints_that_it_has(self) -> None:
        (published,) = slice_of(device("a", taints=[{"key": "k", "effect": "None"}])).spec.devices
        assert TaintRules().taints_of(None, published, None) is published.taints  # type: ignore[arg-type]


def test_nodes_whose_devices_differ_only_in_a_compared_value_are_told_apart() -> None:
    alike = [device(f"d{n}", attributes={"numa": 0}) for n in range(2)]
    apart = [device(f"d{n}", attributes={"numa": n}) for n in range(2)]
    inventory = inventory_of(
        slice_of(*alike, name="a", pool="a"), slice_of(*apart, name="b", pool="b", nodeName="node-b")
    )
    wanted = claim_of(exactly(count=2), constraints=[{"matchAttribute": f"{GPU}/numa"}])
    assert list(Allocator(inventory, [wanted]).suitable(["node-a", "node-b"])) == ["node-a"]


def test_a_pool_that_is_incomplete_is_told_from_one_that_is_empty() -> None:
    inventory = inventory_of(
        slice_of(name="a", pool="a", count=2), slice_of(name="b", pool="b", nodeName="node-b", devices=[])
    )
    allocator = Allocator(inventory, [claim_of(every())])
    for _ in range(2):
        assert isinstance(allocator.allocate("node-a", new_uid=str), NodeError)
        assert isinstance(allocator.allocate("node-b", new_uid=str), Unsatisfiable)


def test_nodes_that_see_the_same_pools_see_one_and_the_same_and_are_answered_once() -> None:
    inventory = inventory_of(*(slice_of(*TWO, name=pool, pool=pool, allNodes=True) for pool in ("one", "two")))
    assert inventory.views("node-a") is inventory.views("node-b")
    allocator = Allocator(inventory, [ONE])
    assert allocator.answer("node-a") is allocator.answer("node-b")
    inventory.put_claim(held("old", "a", "b", pool="one"))
    assert picked(inventory, ONE, node="node-b") == ["a"]
    assert inventory.views("node-a")[0].key[1] == "one"


def test_an_inventory_takes_what_a_reader_of_manifests_returns(tmp_path: Path) -> None:
    file = tmp_path / "objects.yaml"
    file.write_text(
        "apiVersion: v1\nkind: Node\nmetadata: {name: node-a, labels: {zone: x}}\n---\n"
        "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu}\nspec: {}\n"
    )
    inventory = Inventory()
    for each in read_manifests([file]).objects:
        inventory.put(each)
    assert inventory.labels_of("node-a").labels == {"zone": "x"}
    assert list(inventory.classes) == ["gpu"]


def test_an_inventory_takes_a_document_with_its_view() -> None:
    inventory = Inventory()
    inventory.put(Partial({"kind": "Node"}, node_of("n", zone="x")))
    assert list(inventory.nodes) == ["n"]


@pytest.mark.parametrize("value", [ResourceClaimTemplate(), {"kind": "Node"}, None])
def test_an_inventory_refuses_what_it_does_not_know(value: object) -> None:
    with pytest.raises(UsageError, match=f"not a {type(value).__name__}"):
        Inventory().put(value)


def test_inventories_and_validation_start_from_the_same_gates() -> None:
    assert Inventory().gates == Context().gates == FeatureGates.defaults()
