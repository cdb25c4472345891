"""What a node must have left."""

from __future__ import annotations

from typing import Any

import pytest

from drakit.api import DeviceClass
from drakit.api.objects.plain import from_plain
from drakit.scheduler.config import NodeResourcesFitArgs
from drakit.scheduler.framework import Action
from drakit.scheduler.plugins.fit import NodeResourcesFit
from tests.scheduler.plugins.making import codes, hint, make_node, make_pod, on, reasons

GPU = "vendor.example/gpu"


def test_every_resource_that_falls_short_is_named() -> None:
    pod = make_pod(requests={"cpu": "5", "memory": "9Gi", "ephemeral-storage": "1", GPU: 1, "hugepages-2Mi": "2Mi"})
    assert reasons(NodeResourcesFit(), pod, on(make_node("a", allocatable={}))) == {
        "a": (
            "Too many pods",
            "Insufficient cpu",
            "Insufficient memory",
            "Insufficient ephemeral-storage",
            "Insufficient hugepages-2Mi",
            "Insufficient vendor.example/gpu",
        )
    }


def test_what_other_pods_take_is_not_there_and_preemption_may_help() -> None:
    node = on(make_node("a"), make_pod("old", requests={"cpu": "3"}))
    pod = make_pod(requests={"cpu": "1100m"})
    assert reasons(NodeResourcesFit(), pod, node) == {"a": ("Insufficient cpu",)}
    assert codes(NodeResourcesFit(), pod, node) == {"a": "UNSCHEDULABLE"}
    assert reasons(NodeResourcesFit(), make_pod(requests={"cpu": "1"}), node) == {}


def test_more_than_the_node_has_when_empty_is_beyond_preemption() -> None:
    pod = make_pod(requests={"cpu": "4100m"})
    assert codes(NodeResourcesFit(), pod, on(make_node("a"))) == {"a": "UNRESOLVABLE"}


def test_a_node_takes_so_many_pods_and_no_more() -> None:
    node = on(make_node("a", allocatable={"pods": 2}), make_pod("one"), make_pod("two"))
    assert reasons(NodeResourcesFit(), make_pod("three"), node) == {"a": ("Too many pods",)}
    assert codes(NodeResourcesFit(), make_pod("three"), node) == {"a": "UNSCHEDULABLE"}


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        ({"initContainers": [{"name": "i", "resources": {"requests": {"cpu": "3"}}}]}, 3000),
        ({"initContainers": [{"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "3"}}}]}, 4000),
        ({"overhead": {"cpu": "500m"}}, 1500),
        ({"resources": {"requests": {"cpu": "2"}}}, 2000),
    ],
    ids=["init container", "sidecar", "overhead", "pod level"],
)
def test_all_that_a_pod_asks_for_counts(spec: dict[str, Any], cpu: int) -> None:
    pod = make_pod(requests={"cpu": "1"}, **spec)
    exact, short = make_node("exact", allocatable=_cpu(cpu)), make_node("short", allocatable=_cpu(cpu - 1))
    assert reasons(NodeResourcesFit(), pod, on(exact), on(short)) == {"short": ("Insufficient cpu",)}


def _cpu(milli: int) -> dict[str, str]:
    return {"cpu": f"{milli}m", "pods": "9"}


def test_what_claims_of_running_pods_take_of_the_node_is_not_there() -> None:
    taken = [{"resourceClaimName": "c", "containers": ["main"], "resources": {"cpu": "3"}}]
    running = make_pod("old", requests={"cpu": "1"}, status={"nodeAllocatableResourceClaimStatuses": taken})
    assert reasons(NodeResourcesFit(), make_pod(requests={"cpu": "1"}), on(make_node("a"), running)) == {
        "a": ("Insufficient cpu",)
    }


def test_what_an_earlier_attempt_left_in_the_status_of_a_waiting_pod_does_not_count() -> None:
    left = [{"resourceClaimName": "c", "containers": ["main"], "resources": {"cpu": "9"}}]
    pod = make_pod(requests={"cpu": "1"}, status={"nodeAllocatableResourceClaimStatuses": left})
    assert reasons(NodeResourcesFit(), pod, on(make_node("a"))) == {}


def test_names_that_nodes_are_not_counted_in_take_nothing() -> None:
    assert reasons(NodeResourcesFit(), make_pod(requests={"storage": "1Gi"}), on(make_node("a"))) == {}


@pytest.mark.parametrize("ignored", [{"ignoredResources": [GPU]}, {"ignoredResourceGroups": ["vendor.example"]}])
def test_ignored_resources_are_left_to_others(ignored: dict[str, Any]) -> None:
    plugin, pod = NodeResourcesFit(from_plain(NodeResourcesFitArgs, ignored)), make_pod(requests={GPU: 1})
    assert reasons(plugin, pod, on(make_node("a"))) == {}
    assert reasons(NodeResourcesFit(), pod, on(make_node("a"))) == {"a": (f"Insufficient {GPU}",)}


def test_a_resource_that_devices_provide_is_left_to_them_only_where_the_node_has_none() -> None:
    plugin, pod = NodeResourcesFit(is_backed_by_class=lambda name, _: name == GPU), make_pod(requests={GPU: 2})
    without, zero = on(make_node("without")), on(make_node("zero", allocatable={"pods": 9, GPU: 0}))
    few, enough = (on(make_node(f"has{n}", allocatable={"pods": 9, GPU: n})) for n in (1, 2))
    assert reasons(plugin, pod, without, zero, few, enough) == {"has1": (f"Insufficient {GPU}",)}


def test_a_class_that_comes_or_goes_is_seen_on_nodes_that_did_not_change() -> None:
    backed = {GPU}
    plugin = NodeResourcesFit(is_backed_by_class=lambda name, _: name in backed)
    pod, node = make_pod(requests={GPU: 2}), on(make_node("a"))
    assert reasons(plugin, pod, node) == {}
    backed.clear()
    assert reasons(plugin, pod, node) == {"a": (f"Insufficient {GPU}",)}
    backed.add(GPU)
    assert reasons(plugin, pod, node) == {}


def test_a_node_is_looked_at_again_when_it_has_changed_and_only_then() -> None:
    plugin, pod = NodeResourcesFit(), make_pod(requests={"cpu": "2"})
    empty = on(make_node("a"))
    half = empty.with_pod(make_pod("one", requests={"cpu": "2"}))
    full = half.with_pod(make_pod("two", requests={"cpu": "2"}))
    answers = [reasons(plugin, pod, node) for node in (empty, half, full, half, empty)]
    assert answers == [{}, {}, {"a": ("Insufficient cpu",)}, {}, {}]


# What wakes a pod


def test_the_end_of_a_bound_pod_wakes_and_of_one_that_waited_does_not() -> None:
    plugin, pod = NodeResourcesFit(), make_pod(requests={"cpu": "1"})
    assert hint(plugin, "Pod", Action.DELETE, pod, make_pod("old", nodeName="a"), None) == "QUEUE"
    assert hint(plugin, "Pod", Action.DELETE, pod, make_pod("old"), None) == "SKIP"


def test_a_pod_that_shrinks_wakes_those_that_want_what_it_gives_back() -> None:
    plugin, pod = NodeResourcesFit(), make_pod(requests={"cpu": "1"})
    large, small = (make_pod("old", nodeName="a", requests={"cpu": n, "memory": "2Gi"}) for n in ("2", "1"))
    leaner = make_pod("old", nodeName="a", requests={"cpu": "2", "memory": "1Gi"})
    assert hint(plugin, "Pod", Action.UPDATE_POD_SCALE_DOWN, pod, large, small) == "QUEUE"
    assert hint(plugin, "Pod", Action.UPDATE_POD_SCALE_DOWN, pod, large, leaner) == "SKIP"
    assert hint(plugin, "TargetPod", Action.UPDATE_POD_SCALE_DOWN, pod, pod, pod) == "QUEUE"


def test_a_node_wakes_a_pod_that_it_could_hold_if_it_has_more_than_before() -> None:
    plugin, pod = NodeResourcesFit(), make_pod(requests={"cpu": "2"})
    one, two, three = (make_node(allocatable={"cpu": n, "pods": "9"}) for n in ("1", "2", "3"))
    assert hint(plugin, "Node", Action.ADD, pod, None, two) == "QUEUE"
    assert hint(plugin, "Node", Action.ADD, pod, None, one) == "SKIP"
    assert hint(plugin, "Node", Action.UPDATE_NODE_ALLOCATABLE, pod, two, three) == "QUEUE"
    assert hint(plugin, "Node", Action.UPDATE_NODE_ALLOCATABLE, pod, three, two) == "SKIP"
    more_memory = make_node(allocatable={"cpu": "2", "memory": "1Gi", "pods": "9"})
    more_pods = make_node(allocatable={"cpu": "2", "pods": "10"})
    assert hint(plugin, "Node", Action.UPDATE_NODE_ALLOCATABLE, pod, two, more_memory) == "SKIP"
    assert hint(plugin, "Node", Action.UPDATE_NODE_ALLOCATABLE, pod, two, more_pods) == "QUEUE"


def test_a_class_wakes_pods_that_ask_for_its_resource() -> None:
    plugin = NodeResourcesFit()
    explicit, implicit = (
        make_pod(requests={GPU: 1}),
        make_pod(requests={"deviceclass.resource.kubernetes.io/gpus": 1}),
    )
    plain, backing = (
        from_plain(DeviceClass, {"metadata": {"name": "gpus"}, "spec": spec})
        for spec in ({}, {"extendedResourceName": GPU})
    )
    assert hint(plugin, "DeviceClass", Action.ADD, explicit, None, backing) == "QUEUE"
    assert hint(plugin, "DeviceClass", Action.ADD, explicit, None, plain) == "SKIP"
    assert hint(plugin, "DeviceClass", Action.ADD, implicit, None, plain) == "QUEUE"
    assert hint(plugin, "DeviceClass", Action.UPDATE, explicit, plain, backing) == "QUEUE"
    assert hint(plugin, "DeviceClass", Action.UPDATE, explicit, backing, backing) == "SKIP"
