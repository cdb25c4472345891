"""Claims on a node as the scheduler would allocate them: extended resources, and what devices take of the node."""

from __future__ import annotations

from itertools import permutations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from drakit.allocator import Allocated, Allocation, NodeError, Unsatisfiable
from drakit.api import DeviceClass, Node, Pod, ResourceClaim, from_plain
from drakit.base.gates import FeatureGates
from drakit.scheduler.trials import ClaimTrial
from tests.builders.objects import claim_of, class_of, device, exactly, held, inventory_of, pod_of, slice_of

NAME = "example.com/gpu"
KIND = 'device.attributes["gpu.example.com"].kind == "%s"'


def named_class() -> DeviceClass:
    return from_plain(DeviceClass, {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": NAME}})


def roomy(name: str = "node-a", **allocatable: str) -> Node:
    return from_plain(Node, {"metadata": {"name": name}, "status": {"allocatable": allocatable}})


def asking(name: str = "p", amount: str = "1", resource: str = NAME, **spec: Any) -> Pod:
    return pod_of({"name": "c", "resources": {"requests": {resource: amount}}}, name=name, **spec)


def taking(name: str, cpu: str, kind: str = "") -> Any:
    return device(
        name, nodeAllocatableResourceMappings={"cpu": {"allocationMultiplier": cpu}}, attributes={"kind": kind}
    )


def trial(*objects: Any, slices: Any, claims: Any = (), gates: FeatureGates | None = None) -> ClaimTrial:
    gates = gates or FeatureGates.all_on()
    classes = [each for each in objects if isinstance(each, DeviceClass)] or [class_of()]
    used = [each for each in objects if isinstance(each, ResourceClaim)]
    inventory = inventory_of(*slices, classes=classes, used=used, gates=gates)
    return ClaimTrial(inventory, (*slices, *classes, *objects), claims)


def devices(outcome: Allocation) -> list[str]:
    assert isinstance(outcome, Allocated), outcome
    return [each.device for allocation in outcome.allocations for each in allocation.devices.results]


def told(outcome: Allocation) -> str:
    assert isinstance(outcome, NodeError), outcome
    return outcome.message


TWO = slice_of(device("a"), device("b"))


def test_a_pod_gets_the_claim_that_the_scheduler_would_make_for_its_extended_resource() -> None:
    it = trial(named_class(), asking(), slices=[TWO])
    (made,) = it.claims_on("node-a")
    assert made.metadata.name == "p-extended-resources"
    assert [each.name for each in made.spec.devices.requests] == ["container-0-request-0"]
    assert devices(it.allocate("node-a")) == ["a"]


def test_claims_and_extended_resources_are_allocated_together() -> None:
    wanted = claim_of(exactly(), name="c")
    assert devices(trial(named_class(), asking(), slices=[TWO], claims=[wanted]).allocate("node-a")) == ["a", "b"]
    more = trial(named_class(), asking(amount="2"), slices=[TWO], claims=[wanted])
    assert isinstance(more.allocate("node-a"), Unsatisfiable)


def test_implicit_names_count_too() -> None:
    asked = asking(resource="deviceclass.resource.kubernetes.io/gpu")
    assert devices(trial(asked, slices=[TWO]).allocate("node-a")) == ["a"]


def test_a_node_that_has_the_resource_itself_needs_no_claim() -> None:
    it = trial(named_class(), asking(), roomy(**{NAME: "4"}), slices=[TWO])
    assert it.claims_on("node-a") == ()
    assert devices(it.allocate("node-a")) == []


def test_pods_that_are_bound_or_have_ended_ask_for_nothing() -> None:
    ended = asking("q", status={"phase": "Succeeded"})
    assert not trial(named_class(), asking(nodeName="node-a"), ended, slices=[TWO])


def test_a_pod_whose_special_claim_has_its_devices_asks_for_nothing_more() -> None:
    first = trial(named_class(), asking(), slices=[TWO])
    (made,) = first.claims_on("node-a")
    assert not trial(named_class(), asking(), made, slices=[TWO])


def test_without_the_gate_extended_resources_are_not_asked_of_devices() -> None:
    assert not trial(named_class(), asking(), slices=[TWO], gates=FeatureGates.of({"DRAExtendedResource": False}))


def test_another_resource_that_the_node_lacks_is_told_with_the_pod() -> None:
    requests = {NAME: "1", "example.com/fpga": "1"}
    it = trial(named_class(), pod_of({"name": "c", "resources": {"requests": requests}}), slices=[TWO])
    assert told(it.allocate("node-a")) == "pod pod: cannot fit resource"


def test_a_device_that_takes_more_of_the_node_than_is_left_is_told_with_its_claim() -> None:
    busy = pod_of({"name": "c", "resources": {"requests": {"cpu": "10"}}}, name="busy", nodeName="node-a")
    it = trial(roomy(cpu="16"), busy, slices=[slice_of(taking("big", "8"))], claims=[claim_of(exactly(), name="c")])
    assert told(it.allocate("node-a")) == (
        "Insufficient cpu: claim c: device gpu.example.com/pool/big takes cpu of node-a, which has too little"
    )


def test_what_pods_of_the_claims_request_counts_with_what_devices_take() -> None:
    entry = {"name": "x", "resourceClaimName": "c"}
    user = pod_of({"name": "c", "resources": {"requests": {"cpu": "10"}}}, name="user", resourceClaims=[entry])
    wanted, large = claim_of(exactly(), name="c"), slice_of(taking("large", "8"))
    assert "Insufficient cpu" in told(trial(roomy(cpu="16"), user, slices=[large], claims=[wanted]).allocate("node-a"))
    assert devices(trial(roomy(cpu="18"), user, slices=[large], claims=[wanted]).allocate("node-a")) == ["large"]


def test_a_device_of_an_extended_resource_takes_of_the_node_too() -> None:
    it = trial(named_class(), asking(), roomy(cpu="4"), slices=[slice_of(taking("big", "8"))])
    assert told(it.allocate("node-a")) == (
        "Insufficient cpu: claim p-extended-resources: device gpu.example.com/pool/big takes cpu of node-a, "
        "which has too little"
    )


def test_the_next_device_is_taken_when_the_first_does_not_fit() -> None:
    both = slice_of(taking("big", "8"), taking("small", "2"))
    assert devices(trial(roomy(cpu="4"), slices=[both], claims=[claim_of(exactly())]).allocate("node-a")) == ["small"]


def test_a_node_of_which_nothing_is_known_has_enough() -> None:
    big = slice_of(taking("big", "8"))
    assert devices(trial(slices=[big], claims=[claim_of(exactly())]).allocate("node-a")) == ["big"]
    assert devices(trial(roomy(), slices=[big], claims=[claim_of(exactly())]).allocate("node-a")) == ["big"]


def test_with_the_gate_off_nothing_is_taken_of_the_node() -> None:
    gates = FeatureGates.of({"DRANodeAllocatableResources": False})
    it = trial(roomy(cpu="4"), slices=[slice_of(taking("big", "8"))], claims=[claim_of(exactly())], gates=gates)
    assert devices(it.allocate("node-a")) == ["big"]


def test_of_many_devices_that_are_all_too_large_the_one_that_fits_is_found() -> None:
    many = slice_of(*(taking(f"large-{n}", "8") for n in range(40)), taking("small", "2"))
    assert devices(trial(roomy(cpu="4"), slices=[many], claims=[claim_of(exactly())]).allocate("node-a")) == ["small"]


def test_the_device_that_the_first_request_needs_is_kept_when_another_can_be_changed() -> None:
    needed = exactly("first", 1, KIND % "x")
    free = exactly("second", 1, KIND % "y")
    offered = slice_of(taking("a", "4", "x"), taking("b", "4", "y"), taking("c", "1", "y"))
    it = trial(roomy(cpu="5"), slices=[offered], claims=[claim_of(needed, free)])
    assert devices(it.allocate("node-a")) == ["a", "c"]


def test_devices_that_are_in_use_stay_so_among_other_choices() -> None:
    offered = slice_of(taking("a", "8"), taking("b", "2"), taking("c", "3"))
    it = trial(roomy(cpu="4"), held("old", "b"), slices=[offered], claims=[claim_of(exactly())])
    assert devices(it.allocate("node-a")) == ["c"]


@settings(deadline=None)
@given(
    offered=st.lists(st.tuples(st.integers(1, 6), st.sampled_from("xy")), min_size=1, max_size=4),
    wanted=st.lists(st.sampled_from("xy"), min_size=1, max_size=3),
    cpu=st.integers(1, 12),
)
def test_a_choice_that_fits_is_found_whenever_there_is_one(
    offered: list[tuple[int, str]], wanted: list[str], cpu: int
) -> None:
    published = slice_of(*(taking(f"d{n}", str(amount), kind) for n, (amount, kind) in enumerate(offered)))
    claim = claim_of(*(exactly(f"r{n}", 1, KIND % kind) for n, kind in enumerate(wanted)))
    outcome = trial(roomy(cpu=str(cpu)), slices=[published], claims=[claim]).allocate("node-a")
    possible = any(
        all(kind == asked for (_, kind), asked in zip(chosen, wanted, strict=True))
        and sum(amount for amount, _ in chosen) <= cpu
        for chosen in permutations(offered, len(wanted))
    )
    assert isinstance(outcome, Allocated) == possible
    if possible:
        assert sum(offered[int(name[1:])][0] for name in devices(outcome)) <= cpu
