"""What an allocation says: devices in order, configuration, and where it holds."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from drakit.allocator import Allocated, AllocationError, Allocator, allocate
from drakit.api import AllocationResult, from_plain, to_plain
from tests.allocator.picks import gates_without, run
from tests.builders.objects import (
    GPU,
    claim_of,
    class_of,
    device,
    exactly,
    first_of,
    inventory_of,
    node_of,
    slice_of,
    sub,
)

ZONE = {"key": "zone", "operator": "In", "values": ["z1", "z2"]}
DISK = {"key": "disk", "operator": "Exists"}


def only_allocation(got: object) -> AllocationResult:
    assert isinstance(got, Allocated)
    (only,) = got.allocations
    return only


def selector(*requirements: dict[str, Any]) -> dict[str, Any]:
    return {"nodeSelectorTerms": [{"matchExpressions": list(requirements)}]}


def config(number: int, *requests: str) -> dict[str, Any]:
    named = {"requests": list(requests)} if requests else {}
    return {"opaque": {"driver": GPU, "parameters": {"claim": number}}, **named}


def told(result: AllocationResult) -> list[tuple[str, Any, tuple[str, ...]]]:
    return [(each.source, each.opaque and each.opaque.parameters, each.requests) for each in result.devices.config]


def test_a_result_is_complete_and_survives_the_wire() -> None:
    tolerations = [{"key": "k", "operator": "Exists"}]
    bound = device("a", bindingConditions=["ready"], bindingFailureConditions=["failed"], bindsToNode=True)
    got = only_allocation(run(inventory_of(slice_of(bound)), claim_of(exactly(tolerations=tolerations))))
    assert to_plain(got) == {
        "devices": {
            "results": [
                {
                    "request": "req",
                    "driver": GPU,
                    "pool": "pool",
                    "device": "a",
                    "tolerations": tolerations,
                    "bindingConditions": ["ready"],
                    "bindingFailureConditions": ["failed"],
                }
            ]
        },
        "nodeSelector": {
            "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-a"]}]}]
        },
    }
    assert from_plain(AllocationResult, to_plain(got)) == got


class TestConfig:
    CLASSES = (class_of("gpu", config=({"of": "gpu"}, {"more": 1})), class_of("other", config=({"of": "other"},)))

    def test_classes_come_first_each_once_with_all_its_requests(self) -> None:
        inventory = inventory_of(slice_of(device("a"), device("b"), device("c")), classes=self.CLASSES)
        wanted = claim_of(exactly("x"), exactly("y", deviceClassName="other"), exactly("z"), config=[config(0)])
        assert told(only_allocation(run(inventory, wanted))) == [
            ("FromClass", {"of": "gpu"}, ("x", "z")),
            ("FromClass", {"more": 1}, ("x", "z")),
            ("FromClass", {"of": "other"}, ("y",)),
            ("FromClaim", {"claim": 0}, ()),
        ]

    def test_claims_whose_classes_select_alike_share_a_plan_and_get_the_configuration_of_their_own_class(self) -> None:
        inventory = inventory_of(slice_of(device("a")), classes=self.CLASSES)
        claims = [claim_of(exactly(deviceClassName=name)) for name in ("gpu", "other")]
        first, second = (Allocator(inventory, [each]) for each in claims)
        assert first.cost_key is second.cost_key
        assert [told(only_allocation(each.allocate("node-a")))[0][1] for each in (first, second)] == [
            {"of": "gpu"},
            {"of": "other"},
        ]

    def test_a_configuration_of_the_claim_is_listed_once_per_request_that_it_names(self) -> None:
        inventory = inventory_of(slice_of(device("a"), device("b")))
        wanted = claim_of(exactly("x"), exactly("y"), config=[config(0, "x", "y"), config(1, "y"), config(2, "nobody")])
        assert told(only_allocation(run(inventory, wanted))) == [
            ("FromClaim", {"claim": 0}, ("x", "y")),
            ("FromClaim", {"claim": 0}, ("x", "y")),
            ("FromClaim", {"claim": 1}, ("y",)),
        ]

    def test_only_the_alternative_that_was_taken_brings_its_configuration(self) -> None:
        inventory = inventory_of(slice_of(device("a")), classes=self.CLASSES)
        subs = sub("big", 2), sub("small", deviceClassName="other")
        wanted = claim_of(first_of("x", *subs), config=[config(0, "x/big"), config(1, "x/small"), config(2, "x")])
        assert told(only_allocation(run(inventory, wanted))) == [
            ("FromClass", {"of": "other"}, ("x/small",)),
            ("FromClaim", {"claim": 1}, ("x/small",)),
            ("FromClaim", {"claim": 2}, ("x",)),
        ]


class TestNodeSelector:
    def one(self, *slices: Any, count: int = 1) -> Any:
        inventory = inventory_of(*slices)
        inventory.put_node(node_of(zone="z1", disk="ssd"))
        found = only_allocation(run(inventory, claim_of(exactly(count=count)))).node_selector
        return to_plain(found)["nodeSelectorTerms"] if found else None

    def test_a_device_for_all_nodes_holds_everywhere(self) -> None:
        assert self.one(slice_of(device("a"), allNodes=True)) is None

    def test_a_device_that_binds_to_its_node_holds_only_there(self) -> None:
        bound = device("a", bindsToNode=True)
        (term,) = self.one(slice_of(bound, allNodes=True))
        assert term["matchFields"][0]["values"] == ["node-a"]

    def test_selectors_are_merged_and_equal_requirements_told_once(self) -> None:
        turned = {**ZONE, "values": ["z2", "z1"]}
        slices = [
            slice_of(device("a"), name="1", pool="1", nodeSelector=selector(ZONE)),
            slice_of(device("b"), name="2", pool="2", nodeSelector=selector(turned, DISK)),
            slice_of(device("c"), name="3", pool="3", allNodes=True),
        ]
        assert self.one(*slices, count=3) == [{"matchExpressions": [ZONE, DISK]}]

    def test_a_device_of_one_node_outweighs_all_selectors(self) -> None:
        slices = [
            slice_of(device("a"), name="1", pool="1", nodeSelector=selector(ZONE)),
            slice_of(device("b"), name="2", pool="2"),
        ]
        (term,) = self.one(*slices, count=2)
        assert list(term) == ["matchFields"]

    def test_devices_that_select_nodes_themselves_say_where(self) -> None:
        own = device("a", nodeSelector=selector(ZONE))
        assert self.one(slice_of(own, perDeviceNodeSelection=True)) == [{"matchExpressions": [ZONE]}]

    def test_a_selector_with_several_terms_cannot_be_told(self) -> None:
        several = {"nodeSelectorTerms": [{"matchExpressions": [ZONE]}, {"matchExpressions": [DISK]}]}
        inventory = inventory_of(slice_of(device("a"), nodeSelector=several))
        inventory.put_node(node_of(zone="z1"))
        got = run(inventory, claim_of(exactly()))
        assert isinstance(got, AllocationError)
        assert "unsupported ResourceSlice.NodeSelector with 2 terms" in got.message


BOUND = device("bound", bindingConditions=["ready"])
UNKNOWN_MODE = exactly(allocationMode="Some")
NO_CLASS = exactly(deviceClassName="")
MISSING = exactly(deviceClassName="missing")
UNKNOWN_SELECTOR = exactly(selectors=[{}])
UNKNOWN_REQUEST = {"name": "req"}


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (UNKNOWN_MODE, "request req: unsupported count mode Some"),
        (NO_CLASS, "request req: missing device class name (unsupported request type?)"),
        (MISSING, "request req: could not retrieve device class missing"),
        (UNKNOWN_SELECTOR, "request req, selector #0: CEL expression empty (unsupported selector type?)"),
        (UNKNOWN_REQUEST, "request req: missing device class name (unsupported request type?)"),
    ],
)
def test_what_this_version_does_not_know_is_an_error(request_: Any, message: str) -> None:
    got = run(inventory_of(slice_of(device("a"))), claim_of(request_))
    assert isinstance(got, AllocationError)
    assert got.message.startswith(f"claim default/claim, {message}")


def test_an_unknown_constraint_is_an_error() -> None:
    got = run(inventory_of(slice_of(device("a"))), claim_of(exactly(), constraints=[{"requests": ["req"]}]))
    assert isinstance(got, AllocationError)
    assert got.message == "claim default/claim, constraint #0: empty constraint (unsupported constraint type?)"


@pytest.mark.parametrize(
    ("gate", "request_", "message"),
    [
        ("DRAPrioritizedList", first_of("req", sub("s")), "request req: has subrequests"),
        ("DRAConsumableCapacity", exactly(capacity={"requests": {"m": "1"}}), "request req: has capacity requests"),
        (
            "DRAConsumableCapacity",
            first_of("req", sub("s", capacity={"requests": {"m": "1"}})),
            "subrequest s: has capacity requests",
        ),
        ("DRAAdminAccess", exactly(adminAccess=True), "request req: admin access is requested"),
    ],
)
def test_a_claim_that_needs_a_gate_that_is_off_fails_and_says_so(gate: str, request_: Any, message: str) -> None:
    got = run(inventory_of(slice_of(device("a")), gates=gates_without(gate)), claim_of(request_))
    assert isinstance(got, AllocationError)
    assert message in got.message
    assert "disabled" in got.message


@pytest.mark.parametrize("gate", ["DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"])
def test_without_binding_conditions_such_devices_are_passed_over(gate: str) -> None:
    got = run(inventory_of(slice_of(BOUND, device("free")), gates=gates_without(gate)), claim_of(exactly()))
    assert only_allocation(got).devices.results[0].device == "free"


def test_without_taints_nothing_is_tainted() -> None:
    tainted = device("a", taints=[{"key": "k", "effect": "NoSchedule"}])
    got = run(inventory_of(slice_of(tainted), gates=gates_without("DRADeviceTaints")), claim_of(exactly()))
    assert isinstance(got, Allocated)


def test_shares_without_an_id_of_the_callers_are_named_after_claim_and_device() -> None:
    shared = device("a", allowMultipleAllocations=True, capacity={"memory": {"value": "80Gi"}})
    inventory = inventory_of(slice_of(shared))
    half = {"requests": {"memory": "40Gi"}}
    asked = claim_of(exactly("one", capacity=half), exactly("two", capacity=half))

    def shares() -> list[str | None]:
        result = only_allocation(allocate(inventory, "node-a", [asked]))
        return [each.share_id for each in result.devices.results]

    first = shares()
    assert [str(UUID(each)) for each in first] == first
    assert len(set(first)) == 2
    assert shares() == first
