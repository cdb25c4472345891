"""The order of the search, what it gives up, and what it does not hide."""

from __future__ import annotations

from typing import Any

import pytest

from drakit.allocator import AllocationError, Allocator, OutOfTime, Unsatisfiable
from drakit.api import ResourceSlice
from tests.allocator.picks import names, picked, run
from tests.builders.objects import (
    GPU,
    ROOT,
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

NUMA = f"{GPU}/numa"


def gpus(count: int, **fields: object) -> list[dict[str, object]]:
    return [device(f"gpu-{n:02}", **fields) for n in range(count)]


def test_pools_go_by_driver_and_name_slices_by_name_devices_as_listed() -> None:
    inventory = inventory_of(
        slice_of(device("z"), device("a"), name="2", pool="b", count=2),
        slice_of(device("y"), name="1", pool="b", count=2),
        slice_of(device("x"), name="3", pool="a"),
        slice_of(device("w"), name="0", pool="a", driver="zzz.example.com"),
    )
    assert picked(inventory, claim_of(exactly(count=5))) == ["x", "y", "z", "a", "w"]


def test_pools_with_binding_conditions_come_last() -> None:
    inventory = inventory_of(
        slice_of(device("bound", bindingConditions=["ready"]), name="1", pool="a"),
        slice_of(device("free"), name="2", pool="b"),
    )
    assert picked(inventory, claim_of(exactly())) == ["free"]


def test_a_claim_without_requests_gets_an_empty_allocation() -> None:
    assert picked(inventory_of(), claim_of()) == []


def test_the_search_goes_back_over_requests_and_claims() -> None:
    devices = [device("both", attributes={"kind": "x"}), device("one", attributes={"kind": "y"})]
    only_both = f'device.attributes["{GPU}"].kind == "x"'
    inventory = inventory_of(slice_of(*devices))
    assert picked(inventory, claim_of(exactly("any"), exactly("x", 1, only_both))) == ["one", "both"]
    first, second = claim_of(exactly(), name="a"), claim_of(exactly("x", 1, only_both), name="b")
    assert picked(inventory, first, second) == ["one", "both"]


def test_a_selector_error_ends_the_attempt_when_the_search_reaches_the_device() -> None:
    devices = [device("good", attributes={"kind": "x"}), device("bad")]
    inventory = inventory_of(slice_of(*devices))
    picky = f'device.attributes["{GPU}"].kind == "x"'
    assert picked(inventory, claim_of(exactly("req", 1, picky))) == ["good"]
    got = run(inventory, claim_of(exactly("req", 2, picky)))
    assert isinstance(got, AllocationError)
    assert got.message.startswith(
        "claim default/claim, request req: selector #0 on device gpu.example.com/pool/bad: CEL"
    )
    assert got.words == "claim default/claim: selector #0: CEL runtime error: no such key: kind"


def test_a_selector_error_on_a_device_in_use_is_not_reached() -> None:
    inventory = inventory_of(slice_of(device("bad")), used=[held("old", "bad")])
    got = run(inventory, claim_of(exactly("req", 1, f'device.attributes["{GPU}"].kind == "x"')))
    assert isinstance(got, Unsatisfiable)


def test_pruning_does_not_hide_a_selector_error_of_a_later_request() -> None:
    """The first request can never be served twice over, but a full search reaches the device that fails first."""
    inventory = inventory_of(slice_of(*gpus(3), device("bad")))
    wanted = claim_of(exactly("a", 2), exactly("b", 1, f'device.attributes["{GPU}"].kind == "x"'), exactly("c", 9))
    assert isinstance(run(inventory, wanted), AllocationError)


def test_a_selector_that_does_not_compile_fails_only_where_it_is_evaluated() -> None:
    wanted = claim_of(exactly("req", 1, "device.nonsense("))
    assert isinstance(run(inventory_of(), wanted), Unsatisfiable)
    got = run(inventory_of(slice_of(device("a"))), wanted)
    assert isinstance(got, AllocationError)
    assert "CEL compile error" in got.message


def test_an_error_in_a_class_names_the_class() -> None:
    picky = class_of("gpu", f'device.attributes["{GPU}"].kind == "x"')
    got = run(inventory_of(slice_of(device("bad")), classes=[picky]), claim_of(exactly()))
    assert isinstance(got, AllocationError)
    assert got.message.startswith("class gpu: selector #0 on device gpu.example.com/pool/bad: CEL runtime error")
    assert got.words == "class gpu: selector #0: CEL runtime error: no such key: kind"


class TestPrioritizedList:
    def test_the_first_alternative_that_fits_is_taken(self) -> None:
        inventory = inventory_of(slice_of(*gpus(3)))
        assert names(run(inventory, claim_of(first_of("r", sub("four", 4), sub("two", 2), sub("one"))))) == [
            "gpu-00",
            "gpu-01",
        ]

    def test_a_later_request_can_make_the_search_choose_another_alternative(self) -> None:
        inventory = inventory_of(slice_of(*gpus(3)))
        got = run(inventory, claim_of(first_of("r", sub("three", 3), sub("one")), exactly("s", 2)))
        assert names(got) == ["gpu-00", "gpu-01", "gpu-02"]

    def test_an_alternative_that_would_exceed_the_limit_is_passed_over(self) -> None:
        inventory = inventory_of(slice_of(*gpus(40)))
        got = run(inventory, claim_of(exactly("a", 20), first_of("b", sub("many", 13), sub("few", 12))))
        assert len(names(got) or []) == 32

    def test_the_next_claim_has_a_limit_of_its_own(self) -> None:
        inventory = inventory_of(slice_of(*gpus(64)))
        wanted = [claim_of(exactly("a", 32), name="one"), claim_of(exactly("a", 32), name="two")]
        assert len(picked(inventory, *wanted) or []) == 64

    def test_too_many_devices_in_every_alternative_is_an_error(self) -> None:
        got = run(
            inventory_of(slice_of(*gpus(40))), claim_of(exactly("a", 20), first_of("b", sub("x", 13), sub("y", 14)))
        )
        assert isinstance(got, AllocationError)
        assert got.message == "claim default/claim: number of requested devices 33 exceeds the claim limit of 32"

    def test_giving_up_for_the_limit_does_not_reach_devices_that_a_full_search_would(self) -> None:
        """Request b can only be served by 13 devices, too many after 20; nobody then tries other devices for a."""
        picky = f'!has(device.attributes["{GPU}"].odd) || device.attributes["{GPU}"].missing == "x"'
        inventory = inventory_of(slice_of(*gpus(39), device("odd", attributes={"odd": True})))
        wanted = claim_of(exactly("a", 20, picky), first_of("b", sub("x", 13), sub("y", 12, "false")))
        assert isinstance(run(inventory, wanted), AllocationError)
        wanted = claim_of(first_of("c", sub("x", 20, picky), sub("y", 1, "false")), exactly("d", 13))
        assert isinstance(run(inventory, wanted), Unsatisfiable)


class TestAll:
    def test_takes_every_device_that_matches(self) -> None:
        assert picked(inventory_of(slice_of(*gpus(3))), claim_of(every())) == ["gpu-00", "gpu-01", "gpu-02"]

    def test_needs_at_least_one(self) -> None:
        assert isinstance(run(inventory_of(slice_of(*gpus(1))), claim_of(every("req", "false"))), Unsatisfiable)

    def test_fails_when_one_is_in_use(self) -> None:
        assert picked(inventory_of(slice_of(*gpus(2)), used=[held("old", "gpu-01")]), claim_of(every())) is None

    def test_fails_when_one_is_tainted(self) -> None:
        tainted = device("bad", taints=[{"key": "k", "effect": "NoExecute"}])
        inventory = inventory_of(slice_of(device("good"), tainted))
        assert picked(inventory, claim_of(every())) is None
        assert picked(inventory, claim_of(every(tolerations=[{"operator": "Exists"}]))) == ["good", "bad"]

    def test_that_breaks_a_constraint_is_an_error(self) -> None:
        devices = [device("a", attributes={"numa": 0}), device("b", attributes={"numa": 1})]
        got = run(inventory_of(slice_of(*devices)), claim_of(every(), constraints=[{"matchAttribute": NUMA}]))
        assert isinstance(got, AllocationError)
        assert "cannot add device gpu.example.com/pool/b because a claim constraint" in got.message

    def test_of_more_devices_than_a_result_holds_is_an_error(self) -> None:
        assert isinstance(run(inventory_of(slice_of(*gpus(33))), claim_of(every())), AllocationError)


class TestAdminAccess:
    def test_may_use_what_is_in_use_and_is_told_in_the_result(self) -> None:
        inventory = inventory_of(slice_of(*gpus(2)), used=[held("old", "gpu-00", "gpu-01")])
        got = run(inventory, claim_of(every(adminAccess=True)))
        assert names(got) == ["gpu-00", "gpu-01"]
        assert got.allocations[0].devices.results[0].admin_access is True  # type: ignore[union-attr]

    def test_has_the_same_device_only_once_per_claim(self) -> None:
        inventory = inventory_of(slice_of(*gpus(2)))
        wanted = claim_of(exactly("a", adminAccess=True), exactly("b", adminAccess=True))
        assert picked(inventory, wanted) == ["gpu-00", "gpu-01"]

    def test_does_not_charge_the_ledger(self) -> None:
        inventory = inventory_of(slice_of(*gpus(1)), used=[held("admin", "gpu-00", adminAccess=True)])
        assert picked(inventory, claim_of(exactly())) == ["gpu-00"]


def test_work_that_cannot_succeed_is_left_at_once() -> None:
    inventory = inventory_of(slice_of(*gpus(32)))
    got = run(inventory, claim_of(exactly("a", 8), exactly("b", 1, "false")))
    assert isinstance(got, Unsatisfiable)
    assert got.steps <= 2


@pytest.mark.parametrize("group", [7, 15])
def test_match_constraints_that_cannot_be_met_take_few_steps(group: int) -> None:
    devices = [device(f"gpu-{n}", attributes={"numa": n // group}) for n in range(4 * group)]
    wanted = claim_of(exactly(count=group + 1), constraints=[{"matchAttribute": NUMA}])
    got = run(inventory_of(slice_of(*devices)), wanted)
    assert isinstance(got, Unsatisfiable)
    assert got.steps <= 4 * group


def test_many_devices_alike_on_too_few_counters_take_few_steps() -> None:
    counted = {"consumesCounters": [{"counterSet": "set", "counters": {"mem": {"value": "1"}}}]}
    counters = [{"name": "set", "counters": {"mem": {"value": "10"}}}]
    slices = [slice_of(*gpus(24, **counted), name="a", count=2), slice_of(name="b", count=2, sharedCounters=counters)]
    got = run(inventory_of(*slices), claim_of(exactly("a", 6), exactly("b", 6)))
    assert isinstance(got, Unsatisfiable)
    assert got.steps <= 24


def test_unsatisfiable_lists_take_few_steps() -> None:
    devices = [device(f"gpu-{n}", attributes={ROOT: [f"r{n}", f"r{n + 1}"]}) for n in range(20)]
    got = run(inventory_of(slice_of(*devices)), claim_of(exactly(count=4), constraints=[{"matchAttribute": ROOT}]))
    assert isinstance(got, Unsatisfiable)
    assert got.steps <= 400


def test_the_deadline_is_told_and_not_remembered() -> None:
    pairs = [(one, two) for one in range(12) for two in range(one)]
    devices = [
        device(f"gpu-{one}-{two}", attributes={"numa": (one + two) % 2, ROOT: [f"r{one}", f"r{two}"]})
        for one, two in pairs
    ]
    wanted = claim_of(exactly(count=7), constraints=[{"matchAttribute": NUMA}, {"matchAttribute": ROOT}])
    inventory = inventory_of(slice_of(*devices))
    got = Allocator(inventory, [wanted], expired=lambda: True).allocate("node-a", new_uid=str)
    assert isinstance(got, OutOfTime)
    assert isinstance(run(inventory, wanted), Unsatisfiable)


KIND = f'device.attributes["{GPU}"].kind == "x"'


def test_more_devices_than_there_are_is_seen_at_once_though_a_later_selector_would_fail() -> None:
    inventory = inventory_of(slice_of(*gpus(24)))
    got = run(inventory, claim_of(exactly("many", 30)), claim_of(exactly("later", 1, KIND), name="later"))
    assert isinstance(got, Unsatisfiable)
    assert got.steps < 10


def test_a_selector_that_fails_only_on_a_device_in_use_takes_no_bound_away() -> None:
    devices = [device("odd"), *gpus(31, attributes={"kind": "y"})]
    inventory = inventory_of(slice_of(*devices), used=[held("old", "odd")])
    got = run(inventory, claim_of(exactly("many", 8), exactly("none", 1, KIND)))
    assert isinstance(got, Unsatisfiable)
    assert got.steps < 10


def test_a_device_on_which_a_later_selector_fails_is_out_of_its_reach_once_taken() -> None:
    devices = [device("odd"), *gpus(31, attributes={"kind": "y"})]
    got = run(inventory_of(slice_of(*devices)), claim_of(exactly("many", 8), exactly("none", 1, KIND)))
    assert isinstance(got, AllocationError)
    assert "on device gpu.example.com/pool/odd" in got.message
    assert got.steps < 50


def nics_and_gpus() -> ResourceSlice:
    """Half of the devices are on odd NUMA nodes and carry one kind, half on even ones and carry another."""
    devices = [device(f"d{n:02}", attributes={"kind": "xy"[n % 2], "numa": n % 8}) for n in range(32)]
    return slice_of(*devices)


def only(kind: str) -> str:
    return f'device.attributes["{GPU}"].kind == "{kind}"'


@pytest.mark.parametrize(
    ("requests", "constraint"),
    [
        ([exactly("b", 2, only("x")), exactly("c", 2, only("y"))], "matchAttribute"),
        ([exactly("b", 5)], "matchAttribute"),
        ([exactly("b", 4, only("x")), exactly("c", 1, only("x"))], "distinctAttribute"),
        ([first_of("b", sub("p", 2, only("x")), sub("q", 5, only("y"))), exactly("c", 1, only("y"))], "matchAttribute"),
    ],
    ids=["no common value", "no value often enough", "too few values", "no alternative"],
)
@pytest.mark.parametrize("together", [True, False], ids=["one claim", "two claims"])
def test_a_later_constraint_that_cannot_hold_is_seen_before_anything_is_tried(
    requests: list[Any], constraint: str, together: bool
) -> None:
    names = [each["name"] for each in requests]
    constraints = [{constraint: NUMA, "requests": names}]
    many = exactly("many", 8)
    if together:
        claims = [claim_of(many, *requests, constraints=constraints)]
    else:
        claims = [claim_of(many), claim_of(*requests, constraints=constraints, name="later")]
    got = run(inventory_of(nics_and_gpus()), *claims)
    assert isinstance(got, Unsatisfiable)
    assert got.steps < 10


def test_a_request_that_cannot_be_served_keeps_the_search_from_one_that_would_fail() -> None:
    inventory = inventory_of(slice_of(*gpus(22)), used=[held("old", "gpu-21")])
    got = run(inventory, claim_of(exactly("many", 8), every("all"), exactly("fails", 1, KIND)))
    assert isinstance(got, Unsatisfiable)
    assert got.steps < 10


def test_an_administrator_reaches_a_device_in_use_on_which_a_selector_fails() -> None:
    devices = [device("odd"), *gpus(11, attributes={"kind": "y"})]
    inventory = inventory_of(slice_of(*devices), used=[held("old", "odd")])
    watch = exactly("watch", 2, KIND, adminAccess=True)
    assert isinstance(run(inventory, claim_of(watch)), AllocationError)
    assert isinstance(run(inventory, claim_of(exactly("many", 4), watch)), AllocationError)


def test_a_request_that_gives_up_for_the_limit_does_not_go_on_to_a_device_on_which_its_selector_fails() -> None:
    """30 devices and 5 more are too many, whichever they are: the 32nd device is never looked at for the first."""
    devices = [*gpus(31, attributes={"kind": "x"}), device("odd")]
    either = first_of("either", sub("many", 30, KIND), sub("one", 1, f'device.driver == "{GPU}"'))
    got = run(inventory_of(slice_of(*devices)), claim_of(either, exactly("none", 5, "device.driver == 'nobody'")))
    assert isinstance(got, Unsatisfiable)


def test_a_selector_that_fails_on_a_device_in_use_does_not_keep_devices_from_standing_for_each_other() -> None:
    counters = [{"name": f"card-{n}", "counters": {"memory": {"value": "80"}}} for n in range(6)]
    parts = [
        device(
            f"card-{card}-{part}",
            attributes={"size": size},
            consumesCounters=[{"counterSet": f"card-{card}", "counters": {"memory": {"value": str(size)}}}],
        )
        for card in range(6)
        for part, size in enumerate((50, 40, 40))
    ]
    sizes = [f'device.attributes["{GPU}"].size == {size}' for size in (40, 50)]
    inventory = inventory_of(
        slice_of(*parts, device("odd"), name="parts", count=2),
        slice_of(name="counters", count=2, sharedCounters=counters),
        used=[held("old", "odd")],
    )
    got = run(inventory, claim_of(exactly("halves", 5, sizes[0]), exactly("wholes", 4, sizes[1])))
    assert isinstance(got, Unsatisfiable)
    assert got.steps < 200
