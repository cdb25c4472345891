"""The allocator against a naive twin, its ledger against a rebuild, its forks against each other."""

from __future__ import annotations

from itertools import islice
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from drakit.allocator import Allocated, Allocation, Allocator, Inventory, Ledger, allocate
from drakit.api import DeviceTaintRule, Node, ResourceClaim, ResourceSlice, from_plain
from drakit.base.errors import SelectorInvalid
from drakit.selectors import bind, compile_selector
from tests.conformance.allocation import DATA, OUTCOMES, inventory_from, run_case
from tests.conformance.vectors import read_vectors
from tests.properties.brute_force import Abort, BruteForce
from tests.properties.clusters import GPU, NODE, carved_clusters, clusters, crowded_clusters, holders

Plain = dict[str, Any]


def evaluator(case: Plain) -> Any:
    lists = "DRAListTypeAttributes" in case["featureGates"]
    consumable = "DRAConsumableCapacity" in case["featureGates"]

    def evaluate(text: str, driver: str, device: Plain) -> bool:
        try:
            selector = compile_selector(text, list_attributes=lists, consumable_capacity=consumable)
        except SelectorInvalid as error:
            raise Abort(str(error)) from error
        outcome = selector.evaluate(bind(driver, device))
        if outcome.error:
            raise Abort(outcome.error)
        return outcome.matches

    return evaluate


def naive(case: Plain) -> tuple[str, list[list[tuple[str, ...]]]]:
    outcome, picks = BruteForce(case, evaluator(case)).run()
    return outcome.partition(":")[0], [[(p.alternative.full_name, *p.candidate.id) for p in each] for each in picks]


def real(case: Plain) -> tuple[str, list[list[tuple[str, ...]]]]:
    return told(run_case(case))


def told(got: Allocation) -> tuple[str, list[list[tuple[str, ...]]]]:
    if not isinstance(got, Allocated):
        return OUTCOMES[type(got)], []
    results = [each.devices.results for each in got.allocations]
    return "allocated", [[(r.request, r.driver, r.pool, r.device) for r in each] for each in results]


def test_the_naive_one_gives_the_recorded_answers_itself() -> None:
    for case in islice(read_vectors([DATA]), 0, None, 7):
        outcome, picks = naive(case)
        assert outcome == case["expect"]["outcome"], case["id"]
        results = [each["devices"].get("results", []) for each in case["expect"].get("allocations", [])]
        assert picks == [[(r["request"], r["driver"], r["pool"], r["device"]) for r in each] for each in results]


@settings(max_examples=400, deadline=None)
@given(clusters())
def test_the_search_finds_what_the_naive_one_finds_and_fails_as_it_fails(case: Plain) -> None:
    assert real(case) == naive(case)


@settings(max_examples=200, deadline=None)
@given(crowded_clusters())
def test_devices_that_stand_for_each_other_are_taken_in_order_all_the_same(case: Plain) -> None:
    assert real(case) == naive(case)


@settings(max_examples=200, deadline=None)
@given(carved_clusters())
def test_parts_of_cards_alike_are_taken_in_order_all_the_same(case: Plain) -> None:
    assert real(case) == naive(case)


@settings(max_examples=100, deadline=None)
@given(clusters())
def test_asking_twice_gives_the_same_answer(case: Plain) -> None:
    inventory = inventory_from(case)
    claims = [from_plain(ResourceClaim, each) for each in case["claims"]]
    answers = [told(allocate(inventory, "node-a", claims, new_uid=str)) for _ in range(2)]
    assert answers[0] == answers[1] == real(case)


def moved(case: Plain, node: str, turn: int) -> Plain:
    """The case on a node of its own, with attributes turned so that pools differ in nothing else."""
    slices, used = [], []
    for each in case["slices"]:
        spec = {
            k: v for k, v in each["spec"].items() if k not in ("allNodes", "nodeSelector", "perDeviceNodeSelection")
        }
        spec["devices"] = [_turned(device, turn) for device in spec.get("devices", [])]
        spec |= {"nodeName": node, "pool": {**spec["pool"], "name": f"{node}-{spec['pool']['name']}"}}
        slices.append({"metadata": {"name": f"{node}-{each['metadata']['name']}"}, "spec": spec})
    for each in case["allocatedClaims"]:
        results = [
            {**result, "pool": f"{node}-{result['pool']}"}
            for result in each["status"]["allocation"]["devices"]["results"]
        ]
        meta = {**each["metadata"], "uid": f"{node}-{each['metadata']['uid']}"}
        used.append({"metadata": meta, "status": {"allocation": {"devices": {"results": results}}}})
    return {**case, "node": {"metadata": {"name": node}}, "slices": slices, "allocatedClaims": used}


def _turned(device: Plain, turn: int) -> Plain:
    attributes = dict(device.get("attributes", {}))
    if "numa" in attributes:
        attributes["numa"] = {"int": (attributes["numa"]["int"] + turn) % 3}
    return {
        **{k: v for k, v in device.items() if k not in ("nodeName", "nodeSelector", "allNodes")},
        "attributes": attributes,
    }


@settings(max_examples=60, deadline=None)
@given(st.lists(clusters(), min_size=2, max_size=3))
def test_nodes_are_answered_as_if_each_were_asked_alone(cases: list[Plain]) -> None:
    """What is found out about one node is used for others; never for one that differs in what matters."""
    homes = [moved(case, f"node-{n}{turn}", turn) for n, case in enumerate(cases) for turn in (0, 1)]
    both = {key: [each for home in homes for each in home[key]] for key in ("slices", "allocatedClaims")}
    case = {**cases[0], **both}
    nodes = [home["node"]["metadata"]["name"] for home in homes]
    claims = [from_plain(ResourceClaim, each) for each in case["claims"]]
    allocator = Allocator(inventory_from(case), claims)
    answers = [told(allocator.allocate(node, new_uid=str)) for node in nodes]
    assert answers == [told(allocate(inventory_from(case), node, claims, new_uid=str)) for node in nodes]
    found = [node for node, (outcome, _) in zip(nodes, answers, strict=True) if outcome == "allocated"]
    assert list(allocator.suitable(nodes)) == list(Allocator(inventory_from(case), claims).suitable(nodes)) == found


DEVICES = st.tuples(st.just(GPU), st.sampled_from(["pool-0", "pool-1"]), st.sampled_from(["a", "b", "c"]))
CLAIMS = st.integers(0, 4).flatmap(lambda number: DEVICES.flatmap(lambda device: holders(number, device)))
CHANGES = st.lists(st.tuples(st.sampled_from(["put", "remove", "begin", "end"]), CLAIMS), max_size=20)


@given(CHANGES, st.booleans())
def test_the_ledger_comes_out_equal_when_built_anew(changes: list[tuple[str, Plain]], consumable: bool) -> None:
    ledger = Ledger(consumable=consumable)
    stored: dict[str, ResourceClaim] = {}
    in_flight: dict[str, ResourceClaim] = {}
    for what, plain in changes:
        claim = from_plain(ResourceClaim, plain)
        uid = claim.metadata.uid
        if what == "put":
            ledger.put(claim)
            stored[uid] = claim
        elif what == "remove":
            ledger.remove(uid)
            stored.pop(uid, None)
        elif what == "begin" and claim.status.allocation:
            ledger.begin(claim, claim.status.allocation)
            in_flight[uid] = claim
        else:
            ledger.end(uid)
            in_flight.pop(uid, None)
    assert ledger == Ledger((stored | in_flight).values(), consumable=consumable)


@given(CHANGES, CHANGES)
def test_a_forked_ledger_and_its_origin_do_not_see_each_other(
    before: list[tuple[str, Plain]], after: list[tuple[str, Plain]]
) -> None:
    ledger = Ledger(from_plain(ResourceClaim, plain) for _, plain in before)
    copy = Ledger(from_plain(ResourceClaim, plain) for _, plain in before)
    forked = ledger.fork()
    for _, plain in after:
        forked.put(from_plain(ResourceClaim, plain))
    assert ledger == copy
    for _, plain in after:
        ledger.put(from_plain(ResourceClaim, plain))
    assert ledger == forked


RULE = {
    "metadata": {"name": "all"},
    "spec": {"deviceSelector": {}, "taint": {"key": "off", "effect": "NoSchedule"}},
}


def change_everything(inventory: Inventory, case: Plain) -> None:
    """Take away nodes and slices, taint what is left, and hold devices that were free."""
    inventory.put_rule(from_plain(DeviceTaintRule, RULE))
    for each in case["slices"][::2]:
        inventory.remove_slice(each["metadata"]["name"])
    for each in case["slices"][1::2]:
        spec = {**each["spec"], "pool": {**each["spec"]["pool"], "generation": 2}}
        inventory.put_slice(from_plain(ResourceSlice, {**each, "spec": spec}))
    for each in case["allocatedClaims"]:
        inventory.remove_claim(each["metadata"]["uid"])
    inventory.remove_class("any")
    inventory.put_node(from_plain(Node, {"metadata": {"name": "node-a", "labels": {}}}))


@settings(max_examples=100, deadline=None)
@given(clusters())
def test_what_happens_to_a_fork_does_not_change_its_origin(case: Plain) -> None:
    case["featureGates"] = [*case["featureGates"], "DRADeviceTaintRules"]
    inventory = inventory_from(case)
    claims = [from_plain(ResourceClaim, each) for each in case["claims"]]
    before = told(allocate(inventory, "node-a", claims, new_uid=str))
    forked = inventory.fork()
    change_everything(forked, case)
    told(allocate(forked, "node-a", claims, new_uid=str))
    assert told(allocate(inventory, "node-a", claims, new_uid=str)) == before == real(case)


@settings(max_examples=100, deadline=None)
@given(clusters(), st.data())
def test_updates_one_by_one_lead_to_the_same_inventory_as_building_it_anew(case: Plain, data: st.DataObject) -> None:
    """Objects come, change and go in any order; what counts is what is there in the end."""
    inventory = inventory_from({**case, "slices": [], "allocatedClaims": []})
    for each in data.draw(st.permutations(case["slices"])):
        older = {**each["spec"], "pool": {**each["spec"]["pool"], "generation": 0}, "devices": []}
        inventory.put_slice(from_plain(ResourceSlice, {**each, "spec": older}))
        inventory.views("node-a")
        inventory.put_slice(from_plain(ResourceSlice, each))
    for each in case["allocatedClaims"]:
        inventory.put_claim(from_plain(ResourceClaim, each))
    claims = [from_plain(ResourceClaim, each) for each in case["claims"]]
    assert told(allocate(inventory, "node-a", claims, new_uid=str)) == real(case)


def without_errors(case: Plain) -> Plain:
    """The case with selectors that cannot fail, and no `All`, for which a new device may be one too many."""
    harmless = {"cel": {"expression": f'device.driver == "{GPU}"'}}
    claims = []
    for claim in case["claims"]:
        asked = []
        for request in claim["spec"]["devices"]["requests"]:
            parts = [request["exactly"]] if "exactly" in request else request["firstAvailable"]
            for part in parts:
                if "selectors" in part:
                    part["selectors"] = [harmless]
                part |= {"allocationMode": "ExactCount", "count": part.get("count", 1)}
            asked.append(request)
        claims.append({**claim, "spec": {"devices": {**claim["spec"]["devices"], "requests": asked}}})
    return {**case, "claims": claims}


@settings(max_examples=200, deadline=None)
@given(clusters().map(without_errors), st.sampled_from(["aaa", "pool-0", "zzz"]), st.integers(0, 3))
def test_one_device_more_never_makes_a_solvable_request_unsolvable(case: Plain, pool: str, numa: int) -> None:
    before, _ = real(case)
    device = {"name": "more", "attributes": {"model": {"string": "h100"}, "numa": {"int": numa}}}
    spec = {
        "driver": "more.example.com",
        "nodeName": NODE["metadata"]["name"],
        "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1},
        "devices": [device],
    }
    more = {**case, "slices": [*case["slices"], {"metadata": {"name": "more"}, "spec": spec}]}
    after, _ = real(more)
    assert before != "allocated" or after == "allocated"
