"""What a pod takes of its node."""

from __future__ import annotations

from typing import Any

import pytest

from drakit.scheduler.framework.footprints import footprint_of
from drakit.scheduler.framework.nodes import NodeInfo
from tests.scheduler.plugins.making import make_node, make_pod

MEBIBYTE = 2**20
CLAIMS = [{"resourceClaimName": "c", "containers": ["main"], "resources": {"cpu": "2"}}]


def test_pods_of_one_template_share_their_footprint() -> None:
    first, second = make_pod("a", requests={"cpu": "1"}), make_pod("b", requests={"cpu": "1"}, nodeName="n")
    assert footprint_of(first) is footprint_of(second)


@pytest.mark.parametrize(
    "other",
    [
        {"requests": {"cpu": "2"}},
        {"requests": {"memory": "1"}},
        {"overhead": {"cpu": "1"}},
        {"resources": {"requests": {"cpu": "3"}}},
        {"initContainers": [{"name": "i", "resources": {"requests": {"cpu": "2"}}}]},
        {"status": {"nodeAllocatableResourceClaimStatuses": CLAIMS}},
        {"status": {"containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "5"}, "resources": {}}]}},
        {"containers": [{"name": "main", "ports": [{"containerPort": 1, "hostPort": 1}]}]},
    ],
)
def test_whatever_changes_what_a_pod_takes_changes_its_footprint(other: dict[str, Any]) -> None:
    plain, changed = (
        footprint_of(make_pod(requests={"cpu": "1"})),
        footprint_of(make_pod(**{"requests": {"cpu": "1"}, **other})),
    )
    assert (plain.requested, plain.ports) != (changed.requested, changed.ports)


def test_amounts_are_rounded_up() -> None:
    assert footprint_of(make_pod(requests={"cpu": "1u", "memory": "1500m"})).requested == {"cpu": 1, "memory": 2}


def test_a_container_that_names_nothing_counts_a_little() -> None:
    assert footprint_of(make_pod()).nonzero == {"cpu": 100, "memory": 200 * MEBIBYTE}
    assert footprint_of(make_pod(requests={"cpu": "0"})).nonzero == {"cpu": 0, "memory": 200 * MEBIBYTE}


def test_a_pod_that_names_its_own_amount_has_said_enough_about_it() -> None:
    containers = [{"name": "a", "resources": {"requests": {"cpu": "1"}}}, {"name": "b"}]
    budgeted = make_pod(containers=containers, resources={"requests": {"memory": "64Mi"}})
    assert footprint_of(budgeted).nonzero == {"cpu": 1000, "memory": 64 * MEBIBYTE}
    assert footprint_of(make_pod(containers=containers)).nonzero == {"cpu": 1100, "memory": 400 * MEBIBYTE}


def test_what_claims_take_counts_where_the_pod_runs_but_not_while_it_waits() -> None:
    found = footprint_of(make_pod(requests={"cpu": "1"}, status={"nodeAllocatableResourceClaimStatuses": CLAIMS}))
    assert (found.requested, found.asked) == ({"cpu": 3000}, {"cpu": 1000})
    assert (found.nonzero["cpu"], found.nonzero_asked["cpu"]) == (3000, 1000)


def test_a_pod_that_asks_for_something_else_than_before_is_counted_anew() -> None:
    info = NodeInfo(make_node()).with_pod(make_pod(requests={"cpu": "3", "memory": "1Gi"}))
    info = info.with_pod(make_pod(requests={"cpu": "1"}))
    assert {name: amount for name, amount in info.requested.items() if amount} == {"cpu": 1000}
    assert info.without_pod("uid-pod").requested["cpu"] == 0


def test_a_node_info_stays_what_it_was() -> None:
    info = NodeInfo(make_node())
    info.with_pod(make_pod(requests={"cpu": "1"}))
    assert (info.requested, info.pods) == ({}, {})
