"""Figures of the scheduler, as they are read."""

from __future__ import annotations

import re

import pytest
from prometheus_client import generate_latest

from drakit.base.gates import FeatureGates
from drakit.client import PODS
from drakit.scheduler.framework import PluginStatus
from tests.builders.manifests import claim
from tests.builders.podmanifests import by_name, device_class, node, pod, resource_slice
from tests.builders.schedulercluster import SchedulingCluster, on_loop, scheduling
from tests.scheduler.stubborn import Stubborn

PROFILE = "default-scheduler"


def attempts(it: SchedulingCluster, result: str) -> float:
    return it.metric("scheduler_schedule_attempts_total", result=result, profile=PROFILE)


def points(it: SchedulingCluster, name: str, status: str = "Success") -> float:
    labels = {"extension_point": name, "status": status, "profile": PROFILE}
    return it.metric("scheduler_framework_extension_point_duration_seconds_count", **labels)


@on_loop
async def test_attempts_are_counted_by_result_and_pods_by_where_they_wait() -> None:
    async with scheduling(controllers=()) as it:
        await it.create(node("a", room={"cpu": "1"}), pod("p", cpu="1"), pod("q", cpu="1"))
        assert (attempts(it, "scheduled"), attempts(it, "unschedulable"), attempts(it, "error")) == (1, 1, 0)
        assert it.metric("scheduler_pending_pods", queue="unschedulable") == 1
        assert it.metric("scheduler_pending_pods", queue="active") == 0
        assert it.metric("scheduler_unschedulable_pods", plugin="NodeResourcesFit", profile=PROFILE) == 1
        await it.delete(PODS, "p")
        await it.run_for(2)
        assert attempts(it, "scheduled") == 2
        assert it.metric("scheduler_unschedulable_pods", plugin="NodeResourcesFit", profile=PROFILE) == 0


@on_loop
async def test_a_bound_pod_counts_its_attempts_and_the_time_since_it_was_queued() -> None:
    async with scheduling(controllers=()) as it:
        await it.create(node("a", room={"cpu": "1"}), pod("p", cpu="1"), pod("q", cpu="1"))
        await it.run_for(40)
        await it.delete(PODS, "p")
        await it.run_for(2)
        assert it.metric("scheduler_pod_scheduling_attempts_count") == 2
        assert it.metric("scheduler_pod_scheduling_attempts_sum") == 3
        assert it.metric("scheduler_pod_scheduling_sli_duration_seconds_count", attempts="2") == 1
        assert it.metric("scheduler_pod_scheduling_sli_duration_seconds_sum", attempts="2") >= 40


@on_loop
async def test_the_cache_and_the_ways_into_the_queue_are_counted() -> None:
    async with scheduling(controllers=()) as it:
        await it.create(node("a"), node("b"), pod("p"))
        assert it.metric("scheduler_cache_size", type="nodes") == 2
        assert it.metric("scheduler_cache_size", type="pods") == 1
        assert it.metric("scheduler_cache_size", type="assumed_pods") == 0
        assert it.metric("scheduler_queue_incoming_pods_total", queue="active", event="UnscheduledPodAdd") == 1


@on_loop
async def test_extension_points_are_measured_always_and_plugins_now_and_then() -> None:
    async with scheduling(controllers=()) as it:
        await it.create(node("a"), *(pod(f"p{number}") for number in range(60)))
        for name in ("PreFilter", "Filter", "Score", "Reserve", "Permit", "PreBind", "Bind"):
            assert points(it, name) == 60, name
        assert it.metric("scheduler_scheduling_algorithm_duration_seconds_count") == 60
        plugin = {"plugin": "NodeResourcesFit", "extension_point": "Filter", "status": "Success"}
        assert 1 <= it.metric("scheduler_plugin_execution_duration_seconds_count", **plugin) <= 20


@on_loop
async def test_an_extension_point_is_told_by_how_it_ended() -> None:
    plugin = Stubborn(pre_filter=[PluginStatus.unresolvable("no")], reserve=[PluginStatus.unschedulable("not here")])
    async with scheduling(controllers=(), **plugin.options) as it:
        await it.create(node("a", room={"cpu": "1"}), pod("refused"))
        assert (points(it, "PreFilter", "UnschedulableAndUnresolvable"), points(it, "Filter")) == (1, 0)
        assert points(it, "PostFilter") == 1
        await it.create(pod("unreserved"))
        assert (points(it, "Reserve", "Unschedulable"), points(it, "Unreserve"), points(it, "Permit")) == (1, 1, 0)
        await it.create(pod("large", cpu="2"))
        assert (points(it, "PreFilter"), points(it, "Filter"), points(it, "Score")) == (2, 1, 1)
        assert points(it, "Filter", "Unschedulable") + points(it, "Filter", "UnschedulableAndUnresolvable") == 1


KUBE_SCHEDULERS = {
    "scheduler_schedule_attempts_total": {"result", "profile"},
    "scheduler_scheduling_attempt_duration_seconds": {"result", "profile"},
    "scheduler_scheduling_algorithm_duration_seconds": set(),
    "scheduler_framework_extension_point_duration_seconds": {"extension_point", "status", "profile"},
    "scheduler_plugin_execution_duration_seconds": {"plugin", "extension_point", "status"},
    "scheduler_pod_scheduling_sli_duration_seconds": {"attempts"},
    "scheduler_pod_scheduling_attempts": set(),
    "scheduler_queue_incoming_pods_total": {"queue", "event"},
    "scheduler_unschedulable_pods": {"plugin", "profile"},
    "scheduler_pending_pods": {"queue"},
    "scheduler_cache_size": {"type"},
    "scheduler_preemption_attempts_total": set(),
    "scheduler_preemption_victims": set(),
}
FIRST_AND_LAST = {
    "scheduler_scheduling_attempt_duration_seconds": (15, 0.001, 16.384),
    "scheduler_scheduling_algorithm_duration_seconds": (15, 0.001, 16.384),
    "scheduler_framework_extension_point_duration_seconds": (12, 0.0001, 0.2048),
    "scheduler_plugin_execution_duration_seconds": (20, 0.00001, 0.022168),
    "scheduler_pod_scheduling_sli_duration_seconds": (20, 0.01, 5242.88),
    "scheduler_pod_scheduling_attempts": (5, 1, 16),
    "scheduler_preemption_victims": (7, 1, 64),
}


@on_loop
async def test_metrics_have_the_names_labels_and_buckets_of_kube_scheduler() -> None:
    async with scheduling(controllers=(), gates=FeatureGates.defaults()) as it:
        await it.create(node("a", room={"cpu": "1"}), *(pod(f"p{number}", cpu="100m") for number in range(30)))
        assert it.scheduler is not None
        labels: dict[str, set[str]] = {}
        bounds: dict[str, set[float]] = {}
        for sample in (each for family in it.scheduler.registry.collect() for each in family.samples):
            name = re.sub(r"_(bucket|count|sum)$", "", sample.name)
            if not name.endswith("_created"):
                labels.setdefault(name, set()).update(sample.labels.keys() - {"le"})
            if sample.labels.get("le", "+Inf") != "+Inf":
                bounds.setdefault(name, set()).add(float(sample.labels["le"]))
    assert {name: found for name, found in labels.items() if name in KUBE_SCHEDULERS} == KUBE_SCHEDULERS
    for name, (count, first, last) in FIRST_AND_LAST.items():
        found = sorted(bounds[name])
        assert len(found) == count, name
        assert [found[0], found[-1]] == pytest.approx([first, last], rel=1e-3), name


@on_loop
async def test_the_status_of_filter_is_unschedulable_where_no_node_fits() -> None:
    async with scheduling(controllers=()) as it:
        await it.create(node("n1"), pod("large", cpu="1000"))
        labels = {"extension_point": "Filter", "status": "Unschedulable", "profile": "default-scheduler"}
        assert it.metric("scheduler_framework_extension_point_duration_seconds_count", **labels) == 1


@on_loop
async def test_attempts_are_told_by_the_plugins_that_refused() -> None:
    async with scheduling(controllers=()) as it:
        await it.create(node("n1"), pod("large", cpu="1000"), pod("small"))
        name = "drakit_scheduler_attempt_duration_seconds_count"
        assert it.metric(name, result="unschedulable", reason="NodeResourcesFit") == 1
        assert it.metric(name, result="scheduled", reason="") == 1


@on_loop
async def test_the_steps_of_the_search_for_devices_are_told_by_result() -> None:
    async with scheduling() as it:
        await it.create(device_class(), node("node-1"), resource_slice("slice", "d0"))
        for name in ("a", "b"):
            await it.create(claim(name), pod(f"pod-{name}", claims=[by_name(name)]))
        assert it.metric("drakit_scheduler_allocation_search_steps_count", result="found") == 1
        assert (it.metric("drakit_scheduler_allocation_search_steps_count", result="none") or 0) >= 1


@on_loop
async def test_requests_and_limits_of_pods_have_a_page_of_their_own() -> None:
    async with scheduling(controllers=()) as it:
        await it.create(node("n1"), pod("small", cpu="500m", memory="1Gi"))
        assert it.scheduler is not None
        text = generate_latest(it.scheduler.pod_resources).decode()
        start = 'kube_pod_resource_request{namespace="default",node="n1",pod="small",priority="0",resource='
        assert f'{start}"cpu",scheduler="default-scheduler",unit="cores"}} 0.5' in text
        assert f'{start}"memory",scheduler="default-scheduler",unit="bytes"}} 1.073741824e+09' in text
        await it.set_status(PODS, "small", {"phase": "Succeeded"})
        assert "kube_pod_resource_request{" not in generate_latest(it.scheduler.pod_resources).decode()
