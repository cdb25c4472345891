"""What the claims of a pod take of its node, claim by claim."""

from __future__ import annotations

import pytest

from drakit.api import Pod, from_plain, to_plain
from drakit.scheduler.dynamicresources.nodeallocatable.amounts import CannotCount
from drakit.scheduler.dynamicresources.nodeallocatable.statuses import (
    claim_statuses,
    containers_by_claim,
    with_statuses,
)
from tests.builders.objects import device, held, slice_of
from tests.scheduler.dynamicresources.nodeallocatable.objects import charging_pod, container, mapped, per_device, uses

_, DEVICES = mapped(
    slice_of(
        device("one", **per_device(cpu="2", memory="1Gi")),
        device("two", **per_device(cpu="500m")),
        device("plain"),
    )
)


def test_the_devices_of_a_claim_add_up_and_claims_stay_apart() -> None:
    asked = charging_pod(container("c", "b", "a"), container("d", "a"), claims=("a", "b"))
    found = claim_statuses(uses(asked, held("b", "two"), held("a", "one", "two", "plain")), DEVICES)
    assert [to_plain(each) for each in found] == [
        {"resourceClaimName": "a", "containers": ["c", "d"], "resources": {"cpu": "2500m", "memory": "1Gi"}},
        {"resourceClaimName": "b", "containers": ["c"], "resources": {"cpu": "500m"}},
    ]


def test_a_claim_that_a_pod_names_twice_counts_once() -> None:
    asked = charging_pod(container("c", "a"), claims=("a",))
    found = claim_statuses(uses(asked, held("a", "one"), held("a", "one")), DEVICES)
    assert [str(each.resources["cpu"]) for each in found] == ["2"]


def test_a_claim_that_no_container_uses_counts() -> None:
    found = claim_statuses(uses(charging_pod(container(), claims=("a",)), held("a", "one")), DEVICES)
    assert [to_plain(each) for each in found] == [
        {"resourceClaimName": "a", "resources": {"cpu": "2", "memory": "1Gi"}}
    ]


def test_a_claim_whose_devices_take_nothing_has_no_status() -> None:
    assert claim_statuses(uses(charging_pod(container("c", "a"), claims=("a",)), held("a", "plain")), DEVICES) == ()


def test_a_claim_whose_devices_are_all_gone_has_no_status() -> None:
    asked = charging_pod(container("c", "a"), claims=("a",))
    assert claim_statuses(uses(asked, held("a", "gone")), DEVICES) == ()
    assert claim_statuses(uses(asked, held("a", "one", pool="gone")), DEVICES) == ()


def test_a_claim_that_lost_one_device_of_several_cannot_be_counted() -> None:
    with pytest.raises(CannotCount) as told:
        claim_statuses(uses(charging_pod(container("c", "a"), claims=("a",)), held("a", "one", "gone")), DEVICES)
    assert str(told.value) == "claim default/a, device gone: device gone not found in pool pool"


def test_containers_are_listed_once_in_the_order_in_which_they_start() -> None:
    twice = {"name": "main", "resources": {"claims": [{"name": "g", "request": "x"}, {"name": "g", "request": "y"}]}}
    init = {"name": "first", "resources": {"claims": [{"name": "g"}, {"name": "lost"}]}}
    spec = {
        "containers": [twice],
        "initContainers": [init],
        "resourceClaims": [{"name": "g", "resourceClaimTemplateName": "t"}],
    }
    status = {"resourceClaimStatuses": [{"name": "g", "resourceClaimName": "pod-g-x7k2p"}]}
    assert containers_by_claim(from_plain(Pod, {"spec": spec, "status": status})) == {"pod-g-x7k2p": ("first", "main")}


def test_statuses_take_the_place_of_those_from_an_attempt_before() -> None:
    asked = charging_pod(container("c", "a"), claims=("a",), taken={"old": {"cpu": "9"}})
    found = claim_statuses(uses(asked, held("a", "one")), DEVICES)
    assert with_statuses(asked, found).status.node_allocatable_resource_claim_statuses == found
    assert with_statuses(asked, ()).status.node_allocatable_resource_claim_statuses == ()
