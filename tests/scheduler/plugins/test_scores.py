"""Which of the nodes that fit is best. The numbers are those of kube-scheduler's formulas."""

from __future__ import annotations

from typing import Any

import pytest

from drakit.api.objects.plain import from_plain
from drakit.scheduler.config import NodeResourcesBalancedAllocationArgs, NodeResourcesFitArgs
from drakit.scheduler.plugins.balancedallocation import BalancedAllocation
from drakit.scheduler.plugins.fit import NodeResourcesFit
from drakit.scheduler.plugins.nodeaffinity import NodeAffinityPlugin
from drakit.scheduler.plugins.normalization import normalize
from drakit.scheduler.plugins.tainttoleration import TaintToleration
from tests.scheduler.plugins.making import make_node, make_pod, on, scores

LARGE = {"cpu": "4", "memory": "10000", "pods": 99}
LARGER = {"cpu": "6", "memory": "10000", "pods": 99}


def fit(**strategy: Any) -> NodeResourcesFit:
    return NodeResourcesFit(from_plain(NodeResourcesFitArgs, {"scoringStrategy": strategy}) if strategy else None)


def test_least_allocated_likes_what_stays_free() -> None:
    pod = make_pod(requests={"cpu": "3", "memory": "5000"})
    nodes = on(make_node("a", allocatable=LARGE)), on(make_node("b", allocatable=LARGER))
    # a: cpu 25, memory 50; b: cpu 50, memory 50
    assert scores(fit(), pod, *nodes) == [37, 50]


def test_pods_that_are_there_count_and_too_much_is_worth_nothing() -> None:
    pod = make_pod(requests={"cpu": "3", "memory": "5000"})
    node = on(make_node("a", allocatable=LARGE), make_pod("old", requests={"cpu": "3", "memory": "2500"}))
    assert scores(fit(), pod, node) == [12]  # cpu 0, memory 25


def test_a_pod_that_asks_for_nothing_is_taken_to_use_a_little() -> None:
    mebibyte = 2**20
    node = on(make_node("a", allocatable={"cpu": "1", "memory": 400 * mebibyte, "pods": 9}))
    assert scores(fit(), make_pod(), node) == [70]  # cpu 90, memory 50


def test_most_allocated_likes_what_is_full() -> None:
    pod = make_pod(requests={"cpu": "3", "memory": "5000"})
    nodes = on(make_node("a", allocatable=LARGE)), on(make_node("b", allocatable=LARGER))
    assert scores(fit(type="MostAllocated"), pod, *nodes) == [62, 50]


def test_weights_count() -> None:
    pod, node = make_pod(requests={"cpu": "3", "memory": "5000"}), on(make_node("a", allocatable=LARGE))
    resources = [{"name": "cpu", "weight": 3}, {"name": "memory", "weight": 1}]
    assert scores(fit(resources=resources), pod, node) == [31]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [([(0, 10), (100, 0)], 38), ([(0, 0), (100, 10)], 63), ([(0, 0), (60, 10)], 92), ([(80, 5)], 50)],
)
def test_a_shape_says_what_a_share_in_use_is_worth(shape: list[tuple[int, int]], expected: int) -> None:
    points = [{"utilization": utilization, "score": score} for utilization, score in shape]
    plugin = fit(type="RequestedToCapacityRatio", requestedToCapacityRatio={"shape": points})
    pod = make_pod(requests={"cpu": "3", "memory": "5000"})
    assert scores(plugin, pod, on(make_node("a", allocatable=LARGE))) == [expected]


def test_other_resources_count_only_for_pods_that_ask_for_them() -> None:
    gpu = "vendor.example/gpu"
    plugin = fit(resources=[{"name": gpu, "weight": 1}])
    node = on(make_node("a", allocatable={gpu: 4}), make_pod("old", requests={gpu: 1}))
    assert scores(plugin, make_pod(requests={gpu: 1}), node) == [50]
    assert scores(plugin, make_pod(), node) == [0]


def test_a_node_without_the_resources_is_worth_nothing() -> None:
    assert scores(fit(), make_pod(), on(make_node("a", allocatable={}))) == [0]


def test_balance_is_better_where_the_pod_evens_out_what_is_in_use() -> None:
    pod = make_pod(requests={"cpu": "2", "memory": "0"})
    node = {"cpu": "4", "memory": "100", "pods": 99}
    evened = on(make_node("evened", allocatable=node), make_pod("old", requests={"memory": "50"}))
    tilted = on(make_node("tilted", allocatable=node))
    # before 75 and 100, after 100 and 75
    assert scores(BalancedAllocation(), pod, evened, tilted) == [87, 62]


def test_balance_over_three_resources_is_the_standard_deviation() -> None:
    gpu = "vendor.example/gpu"
    names = [{"name": name} for name in ("cpu", "memory", gpu)]
    plugin = BalancedAllocation(from_plain(NodeResourcesBalancedAllocationArgs, {"resources": names}))
    node = on(make_node("a", allocatable={"cpu": "4", "memory": "100", gpu: 4}))
    # shares 0.5, 0.5, 0.25: deviation 0.1178, balance 88
    assert scores(plugin, make_pod(requests={"cpu": "2", "memory": "50", gpu: 1}), node) == [69]


def test_a_pod_that_asks_for_nothing_changes_no_balance() -> None:
    assert scores(BalancedAllocation(), make_pod(), on(make_node("a")), on(make_node("b"))) == [0, 0]


def test_taints_that_advise_against_a_node_cost_it() -> None:
    taints = [{"key": key, "effect": "PreferNoSchedule"} for key in ("one", "two")]
    nodes = [on(make_node(f"n{count}", taints=taints[:count])) for count in (0, 1, 2)]
    assert scores(TaintToleration(), make_pod(), *nodes) == [100, 50, 0]
    tolerant = make_pod(tolerations=[{"key": "two", "operator": "Exists"}])
    assert scores(TaintToleration(), tolerant, *nodes) == [100, 0, 0]
    hard = make_pod(tolerations=[{"operator": "Exists", "effect": "NoSchedule"}])
    assert scores(TaintToleration(), hard, *nodes) == [100, 50, 0]


def test_preferred_terms_add_up_and_the_best_node_gets_all() -> None:
    terms = [
        {"weight": weight, "preference": {"matchExpressions": [{"key": key, "operator": "Exists"}]}}
        for key, weight in (("ssd", 3), ("near", 2))
    ]
    pod = make_pod(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}})
    nodes = [on(make_node(f"n{len(labels)}", labels=labels)) for labels in ({}, {"near": ""}, {"near": "", "ssd": ""})]
    assert scores(NodeAffinityPlugin(), pod, *nodes) == [0, 40, 100]


def test_marks_that_are_all_zero_stay_so_and_are_best_in_reverse() -> None:
    assert normalize([0, 0]) == [0, 0]
    assert normalize([0, 0], reverse=True) == [100, 100]
    assert normalize([]) == []
