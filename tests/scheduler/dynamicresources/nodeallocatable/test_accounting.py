"""Whether a node has what a pod takes of it, together with its claims."""

from __future__ import annotations

import msgspec
import pytest

from drakit.api import Pod, ResourceClaimConsumerReference
from drakit.scheduler.dynamicresources.nodeallocatable import Accounting, NodeCharge, with_statuses
from drakit.scheduler.dynamicresources.state.needs import ClaimCharge
from drakit.scheduler.framework import Code, NodeInfo
from tests.builders.objects import device, held, slice_of
from tests.scheduler.dynamicresources.nodeallocatable.objects import (
    OFF,
    Nodes,
    accounting,
    charging_pod,
    container,
    node_info,
    per_device,
    uses,
)

SLICE = slice_of(
    device("core", **per_device(cpu="1")),
    device("gpu", **per_device(cpu="2", memory="8Gi")),
    device("pages", nodeAllocatableResourceMappings={"hugepages-2Mi": {"allocationMultiplier": "4Mi"}}),
    device("scratch", nodeAllocatableResourceMappings={"ephemeral-storage": {"allocationMultiplier": "1Gi"}}),
    device("plain"),
)
ASKED = charging_pod(container("c", "claim", cpu="500m"), claims=("claim",))


def begin(books: Accounting, *allocated: ClaimCharge) -> NodeCharge:
    return books.attempt(ASKED, allocated)


def check(on: NodeInfo, *devices: str, asked: Pod = ASKED) -> tuple[Code, str]:
    told = accounting(SLICE).attempt(asked, ()).check(on, None, lambda: uses(asked, held("claim", *devices)))
    return (Code.SUCCESS, "") if told is None else (told.code, told.message)


def test_pod_and_claim_fit_where_both_together_fit() -> None:
    assert check(node_info(cpu="1500m"), "core") == (Code.SUCCESS, "")
    assert check(node_info(cpu="1499m"), "core") == (Code.UNRESOLVABLE, "Insufficient cpu")


def test_what_other_pods_take_counts_and_preemption_may_help() -> None:
    taken = node_info(cpu="2").with_pod(charging_pod(container(cpu="501m"), name="other"))
    assert check(taken, "core") == (Code.UNSCHEDULABLE, "Insufficient cpu")
    assert (
        check(node_info(cpu="2").with_pod(charging_pod(container(cpu="500m"), name="other")), "core")[0] is Code.SUCCESS
    )


def test_what_claims_of_other_pods_take_counts() -> None:
    other = charging_pod(container("c", "theirs"), name="other", claims=("theirs",), taken={"theirs": {"cpu": "1"}})
    assert check(node_info(cpu="2").with_pod(other), "core") == (Code.UNSCHEDULABLE, "Insufficient cpu")
    assert check(node_info(cpu="2").with_pod(other).without_pod("uid-other"), "core")[0] is Code.SUCCESS


def test_every_resource_that_is_short_is_told_and_one_that_never_fits_decides() -> None:
    taken = node_info(cpu="4", memory="1Gi").with_pod(charging_pod(container(cpu="3"), name="other"))
    assert check(taken, "gpu") == (Code.UNRESOLVABLE, "Insufficient cpu, Insufficient memory")


@pytest.mark.parametrize(
    ("name", "resource"), [("pages", "hugepages-2Mi"), ("scratch", "ephemeral-storage"), ("gpu", "memory")]
)
def test_a_node_without_a_resource_has_nothing_of_it(name: str, resource: str) -> None:
    assert check(node_info(cpu="8"), name) == (Code.UNRESOLVABLE, f"Insufficient {resource}")


def test_overhead_counts() -> None:
    heavy = charging_pod(container("c", "claim"), claims=("claim",), overhead={"cpu": "250m"})
    assert check(node_info(cpu="1249m"), "core", asked=heavy)[0] is Code.UNRESOLVABLE
    assert check(node_info(cpu="1250m"), "core", asked=heavy)[0] is Code.SUCCESS


def test_the_budget_of_a_pod_holds_containers_and_claims() -> None:
    budget = {"requests": {"cpu": "1500m"}}
    fits = charging_pod(container("c", "claim", cpu="500m"), claims=("claim",), resources=budget)
    assert check(node_info(cpu="1500m"), "core", asked=fits) == (Code.SUCCESS, "")
    tight = charging_pod(container("c", "claim", cpu="501m"), claims=("claim",), resources=budget)
    assert check(node_info(cpu="64"), "core", asked=tight) == (
        Code.UNRESOLVABLE,
        "pod level request for cpu is insufficient to cover the aggregated container and node-allocatable DRA requests",
    )


def test_what_the_budget_does_not_name_comes_on_top() -> None:
    asked = charging_pod(container("c", "claim"), claims=("claim",), resources={"requests": {"cpu": "2"}})
    assert check(node_info(cpu="2", memory="8Gi"), "gpu", asked=asked)[0] is Code.SUCCESS
    assert check(node_info(cpu="2", memory="7Gi"), "gpu", asked=asked) == (Code.UNRESOLVABLE, "Insufficient memory")


def test_what_an_attempt_before_left_in_the_pod_does_not_count() -> None:
    stale = charging_pod(container("c", "claim"), claims=("claim",), taken={"claim": {"cpu": "64"}})
    assert check(node_info(cpu="1"), "core", asked=stale)[0] is Code.SUCCESS


def test_devices_that_take_nothing_leave_no_status() -> None:
    plain = uses(ASKED, held("claim", "plain"))
    assert begin(accounting(SLICE)).check(node_info(), None, lambda: plain) is None
    assert accounting(SLICE).statuses(plain) == ()


def test_a_node_that_sees_no_such_device_is_not_asked_for_results() -> None:
    def never() -> list[ClaimCharge]:
        raise AssertionError

    assert begin(accounting(SLICE)).check(node_info("node-b"), None, never) is None


def test_a_claim_that_is_allocated_already_counts_too() -> None:
    attempt = begin(accounting(SLICE), *uses(ASKED, held("claim", "core")))
    told = attempt.check(node_info(cpu="1"), None, list)
    assert told is not None
    assert told.message == "Insufficient cpu"
    assert attempt.check(node_info(cpu="2"), None, list) is None


def test_nothing_counts_without_the_gate_or_without_such_devices() -> None:
    assert accounting(SLICE).is_active
    assert not accounting(SLICE, gates=OFF).is_active
    assert not accounting(slice_of(device("plain"))).is_active
    assert accounting(SLICE, gates=OFF).statuses(uses(ASKED, held("claim", "core"))) == ()


def test_a_claim_through_which_another_pod_takes_its_share_is_refused() -> None:
    claim = held("claim", "core")
    for holders, told in (
        (["other"], "node allocatable resource claim claim is already used by another pod"),
        (["other", "third"], "node allocatable resource claim claim shared by multiple pods"),
    ):
        crowded = node_info("node-b", cpu="64")
        for name in holders:
            crowded = crowded.with_pod(charging_pod(container(), name=name, taken={"claim": {"cpu": "1"}}))
        books = accounting(SLICE, nodes=Nodes([node_info(), crowded]))
        refusal = begin(books, *uses(ASKED, claim)).check(node_info(cpu="64"), None, list)
        assert refusal is not None
        assert (refusal.code, refusal.message) == (Code.UNRESOLVABLE, told)


def test_a_claim_that_is_reserved_for_another_pod_is_refused() -> None:
    claim = held("claim", "core")
    other = ResourceClaimConsumerReference(resource="pods", name="other", uid="uid-other")
    reserved = msgspec.structs.replace(claim, status=msgspec.structs.replace(claim.status, reserved_for=(other,)))
    refusal = begin(accounting(SLICE), *uses(ASKED, reserved)).check(node_info(cpu="64"), None, list)
    assert refusal is not None
    assert refusal.code is Code.UNRESOLVABLE
    own = msgspec.structs.replace(other, uid=ASKED.metadata.uid)
    mine = msgspec.structs.replace(claim, status=msgspec.structs.replace(claim.status, reserved_for=(own,)))
    assert begin(accounting(SLICE), *uses(ASKED, mine)).check(node_info(cpu="64"), None, list) is None


def test_a_claim_of_that_name_in_another_namespace_is_another_claim() -> None:
    other = charging_pod(container(), name="other", taken={"claim": {"cpu": "1"}})
    elsewhere = msgspec.structs.replace(other, metadata=msgspec.structs.replace(other.metadata, namespace="away"))
    books = accounting(SLICE, nodes=Nodes([node_info().with_pod(elsewhere)]))
    assert begin(books, *uses(ASKED, held("claim", "core"))).check(node_info(cpu="64"), None, list) is None


def test_a_claim_whose_devices_take_nothing_may_be_shared() -> None:
    other = ResourceClaimConsumerReference(resource="pods", name="other", uid="uid-other")
    claim = held("claim", "plain")
    shared = msgspec.structs.replace(claim, status=msgspec.structs.replace(claim.status, reserved_for=(other,)))
    assert begin(accounting(SLICE), *uses(ASKED, shared)).check(node_info(), None, list) is None


def test_what_cannot_be_counted_ends_the_attempt() -> None:
    refusal = begin(accounting(SLICE), *uses(ASKED, held("claim", "core", "gone"))).check(
        node_info(cpu="64"), None, list
    )
    assert refusal is not None
    assert refusal.code is Code.ERROR
    assert refusal.message == "claim default/claim, device gone: device gone not found in pool pool"


def test_the_ledger_of_a_node_counts_what_was_judged() -> None:
    books, got = accounting(SLICE), uses(ASKED, held("claim", "gpu"))
    on = node_info(cpu="8", memory="16Gi")
    assert begin(books).check(on, None, lambda: got) is None
    assumed = with_statuses(ASKED, books.statuses(got))
    assert on.with_pod(assumed).requested == {"cpu": 2500, "memory": 8 << 30}
    assert on.with_pod(assumed).without_pod("uid-pod").requested == {"cpu": 0, "memory": 0}
