"""The scheduler dies after every single write: nothing is lost, nothing is made or given twice."""

from __future__ import annotations

from drakit.base.gates import FeatureGates
from drakit.client import CLAIMS, PODS
from tests.builders.manifests import pod_group
from tests.builders.podmanifests import by_template, claim, device_class, node, pod, resource_slice, template
from tests.builders.schedulercluster import SchedulingCluster
from tests.scenarios.mortals import check_every_death
from tests.scheduler.dynamicresources.bindingconditions import attachable, condition, report
from tests.scheduler.dynamicresources.extended.stage import asking, gpu_class
from tests.scheduler.dynamicresources.nodeallocatable import scenes as allocatable
from tests.scheduler.dynamicresources.scenes import bare_slice, user
from tests.scheduler.preemption import scenes as preemption

KINDS = (PODS, CLAIMS)
GATES = FeatureGates.defaults()
WORKLOADS = FeatureGates.of({"GenericWorkload": True, "DRAWorkloadResourceClaims": True, "GangScheduling": True})


async def furnish(it: SchedulingCluster, *devices: str) -> None:
    await it.create(device_class(), node("node-1"), resource_slice("slice", *devices))


async def all_placed(it: SchedulingCluster, *names: str) -> None:
    await it.run_for(30)
    assert [await it.node_of(each) for each in names] == ["node-1"] * len(names)


async def pods_with_claims_of_templates(it: SchedulingCluster) -> None:
    await furnish(it, "d0", "d1", "d2")
    await it.create(template(), pod("p", claims=[by_template("a"), by_template("b")]))
    await it.create(pod("q", claims=[by_template()]))
    await all_placed(it, "p", "q")
    await it.delete(PODS, "p")
    await it.create(pod("r", claims=[by_template()]))
    await all_placed(it, "r")


async def pods_that_share_a_claim(it: SchedulingCluster) -> None:
    await furnish(it, "d0")
    await it.create(claim("c"), user("p"))
    await it.create(user("q"))
    await all_placed(it, "p", "q")


async def a_pod_that_waits_for_a_device(it: SchedulingCluster) -> None:
    await furnish(it)
    await it.create(claim("c"), user("p"))
    await it.create(resource_slice("late", "d0", pool="late"))
    await all_placed(it, "p")


async def pods_with_extended_resources(it: SchedulingCluster) -> None:
    await it.create(gpu_class(), node("node-1"), resource_slice("slice", "d0", "d1", "d2"))
    await it.create(asking("p", gpu=2))
    await it.create(asking("q", gpu=1))
    await all_placed(it, "p", "q")


async def a_device_that_has_to_be_made_ready(it: SchedulingCluster) -> None:
    await it.create(device_class(), node("node-1"), bare_slice("s", [attachable("d0")]), claim("c"), user("p"))
    await it.run_for(20)
    await report(it, condition("Attached"), condition("Booted"))
    await all_placed(it, "p")


async def a_device_that_cannot_be_made_ready(it: SchedulingCluster) -> None:
    await it.create(device_class(), node("node-1"), bare_slice("s", [attachable("d0")]), claim("c"), user("p"))
    await it.run_for(20)
    await report(it, condition("AttachFailed"))
    await it.run_for(20)
    await report(it, condition("Attached"), condition("Booted"))
    await all_placed(it, "p")


async def a_group_that_shares_a_claim(it: SchedulingCluster) -> None:
    await furnish(it, "d0", "d1")
    await it.create(template(), pod_group("pg", [by_template()]))
    for name in ("p", "q"):
        await it.create(pod(name, claims=[by_template()], group="pg"))
    await all_placed(it, "p", "q")


async def a_gang(it: SchedulingCluster) -> None:
    """One member comes before the other, whenever they are tried."""
    await furnish(it, "d0", "d1")
    await it.create(preemption.priority_class("first", 1))
    group = pod_group("pg", [])
    group["spec"]["schedulingPolicy"] = {"gang": {"minCount": 2}}
    await it.create(template(), group)
    await it.create(pod("p", claims=[by_template()], group="pg", spec={"priorityClassName": "first"}))
    await it.create(pod("q", claims=[by_template()], group="pg"))
    await all_placed(it, "p", "q")


async def devices_that_take_cpus_of_their_node(it: SchedulingCluster) -> None:
    room = {"cpu": "4", "memory": "8Gi"}
    await it.create(device_class("cpu", allocatable.CPU), node("node-1", room=room), allocatable.cores(4))
    await it.create(allocatable.capacity_claim("a", 2), user("p", "a"))
    await it.create(allocatable.capacity_claim("b", 1), user("q", "b", cpu="1"))
    await it.create(user("r", "c", cpu="1"), allocatable.capacity_claim("c", 1))  # no cpu is left for it
    await all_placed(it, "p", "q")
    assert await it.node_of("r") == ""


async def a_pod_that_evicts_another(it: SchedulingCluster) -> None:
    for name, value in preemption.PRIORITIES.items():
        await it.create(preemption.priority_class(name, value))
    await furnish(it, "d0", "d1")
    for name, priority in (("a", "low"), ("b", "middle")):
        await preemption.add(it, name, priority)
        await it.run_for(30)
    await preemption.add(it, "c", "high")
    await it.run_for(30)
    assert await preemption.leaving(it) == ["a"]
    await preemption.end(it, "a")
    await all_placed(it, "b", "c")


def test_claims_of_templates() -> None:
    assert check_every_death(pods_with_claims_of_templates, KINDS, gates=GATES) >= 12


def test_a_shared_claim() -> None:
    assert check_every_death(pods_that_share_a_claim, KINDS, gates=GATES) >= 6


def test_a_pod_that_is_told_why_it_waits() -> None:
    assert check_every_death(a_pod_that_waits_for_a_device, KINDS, gates=GATES) >= 5


def test_extended_resources() -> None:
    assert check_every_death(pods_with_extended_resources, KINDS, gates=GATES) >= 12


def test_binding_conditions() -> None:
    assert check_every_death(a_device_that_has_to_be_made_ready, KINDS, gates=GATES) >= 5


def test_binding_conditions_that_fail() -> None:
    assert check_every_death(a_device_that_cannot_be_made_ready, KINDS, gates=GATES) >= 7


def test_a_group_with_a_claim() -> None:
    assert check_every_death(a_group_that_shares_a_claim, KINDS, gates=WORKLOADS) >= 6


def test_a_gang() -> None:
    assert check_every_death(a_gang, KINDS, gates=WORKLOADS, lost=2) >= 8


def test_devices_that_take_of_their_node() -> None:
    found = check_every_death(devices_that_take_cpus_of_their_node, KINDS, gates=allocatable.GATES)
    assert found >= 10


def test_preemption() -> None:
    assert check_every_death(a_pod_that_evicts_another, KINDS, gates=GATES, config=preemption.preempting()) >= 12
