"""Cgroup limits, OOM scores and quality of service from spec, and from spec plus claims."""

from __future__ import annotations

from typing import Any

import pytest

from drakit.nodeagent.containers.limits import container_limits, pod_cgroup_limits, qos_class
from drakit.nodeagent.runtimes.contract import NO_LIMITS
from tests.nodeagent.containers.pods import container, stored_pod

GIB = 1 << 30
BOTH = {"cpu": "1", "memory": "1Gi"}


def limited(
    limits: dict[str, str] | None = None, requests: dict[str, str] | None = None, **changes: Any
) -> dict[str, Any]:
    return container(resources={"limits": limits or {}, "requests": requests or {}}, **changes)


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([container()], "BestEffort"),
        ([limited({"vendor.com/gpu": "1"})], "BestEffort"),
        ([limited(BOTH)], "Guaranteed"),
        ([limited(BOTH, BOTH), limited(BOTH, name="other")], "Guaranteed"),
        ([limited(BOTH, {"cpu": "500m"})], "Burstable"),
        ([limited(BOTH), container("other")], "Burstable"),
        ([limited({"cpu": "1"})], "Burstable"),
    ],
)
def test_quality_of_service_comes_from_the_containers(containers: list[dict[str, Any]], expected: str) -> None:
    assert qos_class(stored_pod(*containers)) == expected


def test_the_pods_own_resources_come_first() -> None:
    assert qos_class(stored_pod(container(), resources={"limits": BOTH})) == "Guaranteed"
    assert qos_class(stored_pod(limited(BOTH), resources={"requests": {"cpu": "1"}})) == "Burstable"


def test_cpu_and_memory_become_weight_quota_and_limit() -> None:
    subject = limited({"cpu": "1500m", "memory": "64Mi"}, {"cpu": "250m"})
    limits = container_limits(stored_pod(subject), subject)
    assert (limits.cpu_shares, limits.cpu_quota, limits.cpu_period) == (256, 150_000, 100_000)
    assert (limits.memory_bytes, limits.needs_cgroup) == (64 << 20, True)


def test_what_the_pod_itself_names_is_for_all_its_containers() -> None:
    limits = pod_cgroup_limits(
        stored_pod(container(), resources={"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}})
    )
    assert (limits.cpu_shares, limits.cpu_quota, limits.memory_bytes) == (1024, 200_000, GIB)
    assert pod_cgroup_limits(stored_pod(limited(BOTH))) == NO_LIMITS


def test_without_any_the_weight_is_the_least() -> None:
    subject = container()
    limits = container_limits(stored_pod(subject), subject)
    assert (limits.cpu_shares, limits.cpu_quota, limits.memory_bytes, limits.needs_cgroup) == (2, 0, 0, False)
    tiny = limited({"cpu": "1m"})
    assert container_limits(stored_pod(tiny), tiny).cpu_quota == 1000


@pytest.mark.parametrize(
    ("subject", "spec", "expected"),
    [
        (container(), {}, 1000),
        (limited(BOTH), {}, -997),
        (limited(requests={"memory": "4Gi"}), {}, 500),
        (limited(requests={"memory": "1Mi"}), {}, 999),
        (limited(requests={"memory": "8Gi"}), {}, 3),
        (limited(requests={"memory": "4Gi"}), {"priority": 2_000_001_000}, -997),
    ],
)
def test_oom_scores(subject: dict[str, Any], spec: dict[str, Any], expected: int) -> None:
    assert container_limits(stored_pod(subject, **spec), subject, node_memory=8 * GIB).oom_score_adj == expected


def test_a_sidecar_is_not_killed_before_those_it_serves() -> None:
    sidecar = limited(requests={"memory": "1Mi"}, name="proxy", restartPolicy="Always")
    whole = stored_pod(limited(requests={"memory": "4Gi"}), initContainers=[sidecar])
    assert container_limits(whole, sidecar, node_memory=8 * GIB).oom_score_adj == 500


def test_claims_count_only_behind_the_switch() -> None:
    subject = limited({"memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"})
    whole = stored_pod(subject, container("other"))
    whole["status"] = {
        "nodeAllocatableResourceClaimStatuses": [
            {"resourceClaimName": "a", "containers": ["main"], "resources": {"cpu": "1", "memory": "1Gi"}},
            {"resourceClaimName": "b", "containers": ["other"], "resources": {"memory": "2Gi"}},
        ]
    }
    without = container_limits(whole, subject, node_memory=8 * GIB)
    with_claims = container_limits(whole, subject, node_memory=8 * GIB, with_claims=True)
    assert (without.cpu_shares, without.memory_bytes, without.oom_score_adj) == (1024, GIB, 875)
    assert (with_claims.cpu_shares, with_claims.memory_bytes, with_claims.oom_score_adj) == (2048, 2 * GIB, 750)
    assert with_claims.cpu_quota == 0  # a claim raises a limit and makes none
    assert qos_class(whole) == "Burstable"


def test_what_the_pod_itself_names_is_raised_by_all_its_claims_behind_the_switch() -> None:
    """Else the containers of the pod, whose limits are raised, would be held to less together."""
    whole = stored_pod(container(), container("other"), resources={"limits": BOTH, "requests": BOTH})
    whole["status"] = {
        "nodeAllocatableResourceClaimStatuses": [
            {"resourceClaimName": "a", "containers": ["main", "other"], "resources": {"cpu": "1", "memory": "1Gi"}},
            {"resourceClaimName": "b", "containers": ["other"], "resources": {"memory": "2Gi"}},
        ]
    }
    without, with_claims = pod_cgroup_limits(whole), pod_cgroup_limits(whole, with_claims=True)
    assert with_claims.memory_bytes == without.memory_bytes + 3 * GIB
    assert with_claims.cpu_quota == without.cpu_quota + 100_000
    assert with_claims.cpu_shares == without.cpu_shares + 1024
    unlimited = stored_pod(container(), resources={"requests": BOTH})
    unlimited["status"] = whole["status"]
    assert not pod_cgroup_limits(unlimited, with_claims=True).needs_cgroup  # a claim makes no limit


def test_a_sidecar_is_not_killed_before_those_it_serves_whose_memory_comes_from_a_claim() -> None:
    sidecar = limited(requests={"memory": "1Mi"}, name="proxy", restartPolicy="Always")
    whole = stored_pod(limited(requests={"memory": "1Mi"}), initContainers=[sidecar])
    taken = {"resourceClaimName": "a", "containers": ["main"], "resources": {"memory": "4Gi"}}
    whole["status"] = {"nodeAllocatableResourceClaimStatuses": [taken]}
    scores = [
        container_limits(whole, sidecar, node_memory=8 * GIB, with_claims=on).oom_score_adj for on in (False, True)
    ]
    assert scores == [999, 500]
