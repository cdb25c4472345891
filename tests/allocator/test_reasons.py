"""Why an allocation failed, and what would help."""

from __future__ import annotations

from typing import Any

import pytest

from drakit.allocator import Cause, NodeError, Reasons, Unsatisfiable, tell
from drakit.allocator import allocation as allocation_module
from tests.allocator.picks import gates_without, run
from tests.builders.objects import (
    GPU,
    claim_of,
    class_of,
    device,
    every,
    exactly,
    first_of,
    held,
    inventory_of,
    slice_of,
    sub,
)

ONE = claim_of(exactly())


def reasons_of(inventory: Any, *claims: Any) -> Reasons:
    got = run(inventory, *claims, explain=True)
    assert isinstance(got, Unsatisfiable | NodeError)
    assert got.reasons is not None
    return got.reasons


def refusals(inventory: Any, *claims: Any, request: int = 0) -> dict[Cause, list[tuple[str, int]]]:
    found: dict[Cause, list[tuple[str, int]]] = {}
    for each in reasons_of(inventory, *claims).claims[0].requests[request].refusals:
        found.setdefault(each.cause, []).append((each.detail, len(each.devices)))
    return found


def remedies(inventory: Any, *claims: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in reasons_of(inventory, *claims).remedies:
        found.setdefault(each.kind, []).append(each.text)
    return found


def test_without_being_asked_nothing_is_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise AssertionError("reasons were collected")

    monkeypatch.setattr(allocation_module, "explain_failure", fail)
    got = run(inventory_of(), ONE)
    assert isinstance(got, Unsatisfiable)
    assert got.reasons is None


def test_selectors_are_told_by_owner_number_and_text() -> None:
    inventory = inventory_of(slice_of(device("a"), device("b")), classes=[class_of("gpu", "true")])
    assert refusals(inventory, claim_of(exactly("req", 1, "true", "false"))) == {
        Cause.SELECTOR: [("selector #1 of the request is false: false", 2)]
    }
    inventory = inventory_of(slice_of(device("a")), classes=[class_of("gpu", "true", "1 > 2")])
    assert refusals(inventory, ONE) == {Cause.SELECTOR: [("selector #1 of class gpu is false: 1 > 2", 1)]}


def test_the_class_is_told_that_the_claim_names_also_where_another_one_selects_alike() -> None:
    inventory = inventory_of(slice_of(device("a")), classes=[class_of("gpu", "false"), class_of("other", "false")])
    details = [refusals(inventory, claim_of(exactly(deviceClassName=name))) for name in ("gpu", "other")]
    assert details == [
        {Cause.SELECTOR: [(f"selector #0 of class {name} is false: false", 1)]} for name in ("gpu", "other")
    ]


def test_a_device_in_use_is_told_with_its_holders() -> None:
    inventory = inventory_of(slice_of(device("a")), used=[held("x", "a"), held("y", "a")])
    assert refusals(inventory, ONE) == {Cause.IN_USE: [("in use by claim default/x, default/y", 1)]}


def test_a_device_taken_by_another_request_is_told_so() -> None:
    found = refusals(inventory_of(slice_of(device("a"))), claim_of(exactly("x"), exactly("y")), request=1)
    assert found == {Cause.IN_USE: [("taken by request x of this allocation", 1)]}


def test_taints_are_told_as_key_value_and_effect() -> None:
    tainted = device("a", taints=[{"key": "k", "value": "v", "effect": "NoExecute"}])
    assert refusals(inventory_of(slice_of(tainted)), ONE) == {
        Cause.TAINT: [("taint k=v:NoExecute is not tolerated", 1)]
    }


def test_constraints_are_told_with_the_values() -> None:
    devices = [device("a", attributes={"numa": 0}), device("b", attributes={"numa": 1}), device("c")]
    wanted = claim_of(exactly(count=2), constraints=[{"matchAttribute": f"{GPU}/numa"}])
    assert refusals(inventory_of(slice_of(*devices)), wanted) == {
        Cause.CONSTRAINT: [
            (f"matchAttribute {GPU}/numa: value 1, chosen before: 0", 1),
            (f"matchAttribute {GPU}/numa: the device does not have it", 1),
        ]
    }


def test_counters_are_told_with_need_and_rest_in_the_notation_of_the_driver() -> None:
    counted = [
        device(name, consumesCounters=[{"counterSet": "set", "counters": {"mem": {"value": "6Gi"}}}]) for name in "ab"
    ]
    counters = [{"name": "set", "counters": {"mem": {"value": "8Gi"}}}]
    slices = [slice_of(*counted, name="a", count=2), slice_of(name="b", count=2, sharedCounters=counters)]
    assert refusals(inventory_of(*slices), claim_of(exactly(count=2))) == {
        Cause.COUNTER: [("counter mem of set: 6Gi needed, 2Gi left", 1)]
    }


def test_capacity_is_told_with_need_and_rest() -> None:
    shared = device(
        "a", allowMultipleAllocations=True, capacity={"mem": {"value": "8", "requestPolicy": {"default": "1"}}}
    )
    old = held("old", "a", shareID="s", consumedCapacity={"mem": "5"})
    inventory = inventory_of(slice_of(shared, device("b")), used=[old])
    assert refusals(inventory, claim_of(exactly(capacity={"requests": {"mem": "4"}}))) == {
        Cause.CAPACITY: [("capacity mem: 4 needed, 3 left", 1), ("has no capacity mem", 1)]
    }


def test_a_policy_that_forbids_an_amount_is_told() -> None:
    policy = {"default": "1", "validValues": ["1", "2"]}
    shared = device("a", allowMultipleAllocations=True, capacity={"mem": {"value": "8", "requestPolicy": policy}})
    assert refusals(inventory_of(slice_of(shared)), claim_of(exactly(capacity={"requests": {"mem": "4"}}))) == {
        Cause.CAPACITY: [("the request policy of capacity mem does not allow 4", 1)]
    }


def test_devices_of_other_nodes_and_gates_are_told() -> None:
    devices = [device("a", nodeName="node-b"), device("b", nodeName="node-a", bindingConditions=["x"])]
    published = slice_of(*devices, perDeviceNodeSelection=True)
    inventory = inventory_of(published, gates=gates_without("DRADeviceBindingConditions"))
    found = refusals(inventory, ONE)
    assert found[Cause.NODE] == [("not accessible from this node", 1)]
    assert "DRADeviceBindingConditions feature is disabled" in found[Cause.BINDING][0][0]


def test_pools_that_cannot_be_used_are_told() -> None:
    inventory = inventory_of(
        slice_of(device("a"), name="1", pool="part", count=2),
        slice_of(device("b"), device("b"), name="2", pool="wrong"),
    )
    assert [(each.pool, each.problem, each.reason) for each in reasons_of(inventory, ONE).pools] == [
        (f"{GPU}/part", "incomplete", "1 of its 2 slices are published"),
        (f"{GPU}/wrong", "invalid", "duplicate device name b"),
    ]
    assert reasons_of(inventory, claim_of(every())).pools


def test_the_best_partial_solution_is_the_deepest_one() -> None:
    devices = [device("a", attributes={"numa": 0}), *[device(f"b{n}", attributes={"numa": 1}) for n in range(2)]]
    wanted = claim_of(exactly(count=3), constraints=[{"matchAttribute": f"{GPU}/numa"}])
    found = reasons_of(inventory_of(slice_of(*devices)), wanted)
    assert found.placed == 2
    assert found.claims[0].requests[0].taken == (f"{GPU}/pool/b0", f"{GPU}/pool/b1")


def test_every_alternative_of_a_prioritized_list_is_told() -> None:
    found = reasons_of(inventory_of(slice_of(device("a"))), claim_of(first_of("x", sub("two", 2), sub("three", 3))))
    assert [(each.request, each.wanted) for each in found.claims[0].requests] == [("x/two", 2)]
    found = reasons_of(inventory_of(), claim_of(first_of("x", sub("two", 2), sub("three", 3))))
    assert [(each.request, each.wanted) for each in found.claims[0].requests] == [("x/two", 2), ("x/three", 3)]


def test_the_text_counts_and_names_devices() -> None:
    inventory = inventory_of(slice_of(*[device(f"d{n}") for n in range(5)]), used=[held("x", "d0")])
    lines = list(tell(reasons_of(inventory, claim_of(every("req")))))
    assert lines[0] == "claim default/claim"
    assert lines[1] == "  request req: all wanted, none found, 5 considered"
    assert "    1 device (d0): in use by claim default/x" in lines
    assert "    4 devices (d1, d2, d3, …): could be used" in lines


class TestRemedies:
    def test_one_more_device_is_named_by_its_like(self) -> None:
        inventory = inventory_of(slice_of(device("a", attributes={"model": "x"})))
        assert remedies(inventory, claim_of(exactly(count=2))) == {
            "device": [f"one more device like {GPU}/pool/a (model=x)"]
        }
        assert remedies(inventory, claim_of(exactly(count=3))) == {}

    def test_a_toleration_is_named_when_it_alone_helps(self) -> None:
        tainted = device("a", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
        assert remedies(inventory_of(slice_of(tainted)), ONE)["toleration"] == ["a toleration of k=v:NoSchedule"]
        twice = device("a", taints=[{"key": "k", "effect": "NoSchedule"}, {"key": "l", "effect": "NoSchedule"}])
        assert "toleration" not in remedies(inventory_of(slice_of(twice)), ONE)

    def test_a_selector_is_named_when_dropping_it_alone_helps(self) -> None:
        inventory = inventory_of(slice_of(device("a")), classes=[class_of("gpu", "2 > 1")])
        assert remedies(inventory, claim_of(exactly("req", 1, "true", "1 > 2"))) == {
            "selector": ["selector #1 of the request dropped: 1 > 2"]
        }
        inventory = inventory_of(slice_of(device("a")), classes=[class_of("gpu", "1 > 2")])
        assert remedies(inventory, ONE) == {"selector": ["selector #0 of class gpu dropped: 1 > 2"]}

    def test_a_constraint_is_named_when_dropping_it_alone_helps(self) -> None:
        inventory = inventory_of(slice_of(device("a"), device("b")))
        wanted = claim_of(exactly(count=2), constraints=[{"matchAttribute": f"{GPU}/numa"}])
        assert remedies(inventory, wanted) == {"constraint": [f"constraint #0 on {GPU}/numa dropped"]}

    def test_an_alternative_of_a_prioritized_list_is_named(self) -> None:
        wanted = claim_of(first_of("x", sub("two", 2), sub("picky", 1, "1 > 2")))
        assert remedies(inventory_of(slice_of(device("a"))), wanted) == {
            "device": [f"one more device like {GPU}/pool/a"],
            "selector": ["selector #0 of picky dropped: 1 > 2"],
        }

    def test_a_claim_is_helped_among_others(self) -> None:
        tainted = device("b", taints=[{"key": "k", "effect": "NoSchedule"}])
        others = claim_of(exactly("x"), name="other")
        assert remedies(inventory_of(slice_of(device("a"), tainted)), others, ONE)["toleration"] == [
            "a toleration of k:NoSchedule (claim other)",
            "a toleration of k:NoSchedule (claim claim)",
        ]

    def test_nothing_is_suggested_for_several_requests(self) -> None:
        assert remedies(inventory_of(slice_of(device("a"))), claim_of(exactly("x"), exactly("y"))) == {}

    def test_trying_remedies_changes_nothing(self) -> None:
        inventory = inventory_of(slice_of(device("a")))
        before = dict(inventory.slices), dict(inventory.classes)
        reasons_of(inventory, claim_of(exactly(count=2)))
        assert (dict(inventory.slices), dict(inventory.classes)) == before


def test_requests_after_the_one_that_fails_are_told_what_they_could_have() -> None:
    """The search never comes to them; the best partial solution serves them all the same."""
    inventory = inventory_of(slice_of(*(device(f"gpu-{n}", attributes={"numa": n // 2}) for n in range(4))))
    aligned = claim_of(exactly("many", 3), constraints=[{"matchAttribute": f"{GPU}/numa"}], name="aligned")
    listed = claim_of(first_of("list", sub("five", 5), sub("one")), name="listed")
    found = reasons_of(inventory, aligned, listed, claim_of(every("all"), name="rest"))
    (many,), (one,), (rest,) = (each.requests for each in found.claims)
    assert [each.rpartition("/")[2] for each in many.taken] == ["gpu-0", "gpu-1"]
    assert {each.cause for each in many.refusals} == {Cause.CONSTRAINT}, "not that a later request has them"
    assert (one.request, [each.rpartition("/")[2] for each in one.taken]) == ("list/one", ["gpu-2"])
    assert rest.taken == (), "all or none"
    assert found.placed == 3
