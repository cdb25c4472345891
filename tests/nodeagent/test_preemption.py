"""Whom a critical pod drives out when the node is full."""

from __future__ import annotations

from typing import Any

import pytest

from drakit.api import Pod
from drakit.base.gates import FeatureGates
from drakit.base.quantity import Quantity
from drakit.nodeagent.pods.admission import NodeFit, victims
from tests.builders.objects import pod_of

FIT = NodeFit(lambda: {"cpu": Quantity.of(4), "pods": Quantity.of(10)}, FeatureGates.all_on())


def asking_pod(name: str, cpu: str, *, priority: int = 0, claim_cpu: str = "") -> Pod:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    status: dict[str, Any] = {}
    if claim_cpu:
        taken = {"resourceClaimName": "x", "resources": {"cpu": claim_cpu}, "containers": ["c"]}
        status = {"nodeAllocatableResourceClaimStatuses": [taken]}
    return pod_of(container, name=name, status=status, priority=priority)


CRITICAL = asking_pod("critical", "1", priority=2_000_001_000)


def names(*others: Pod, with_claims: bool = False) -> list[str] | None:
    chosen = victims(FIT, CRITICAL, others, with_claims=with_claims)
    return None if chosen is None else [each.metadata.name for each in chosen]


def test_the_least_important_goes_and_nobody_without_need() -> None:
    assert names(asking_pod("low", "2", priority=1), asking_pod("high", "2", priority=5)) == ["low"]
    assert names(asking_pod("small", "1")) == []


def test_one_whose_place_is_not_enough_stays_when_a_larger_one_has_to_go() -> None:
    assert names(asking_pod("small", "500m", priority=1), asking_pod("large", "3500m", priority=2)) == ["large"]


def test_critical_pods_stay() -> None:
    assert names(asking_pod("other", "4", priority=2_000_000_000)) is None


@pytest.mark.parametrize(("with_claims", "first"), [(False, "by-spec"), (True, "by-claim")])
def test_of_equals_the_largest_goes_and_claims_count_behind_the_switch(with_claims: bool, first: str) -> None:
    others = (asking_pod("by-spec", "1500m"), asking_pod("by-claim", "500m", claim_cpu="2"))
    assert names(*others, with_claims=with_claims) == [first]
