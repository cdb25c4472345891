"""What pods and groups are told."""

from __future__ import annotations

from drakit.api.objects.meta import find_condition
from drakit.client import POD_GROUPS, PODS
from drakit.scheduler.config import load_configuration
from tests.builders.manifests import pod_group
from tests.builders.podmanifests import node
from tests.builders.schedulercluster import on_loop
from tests.scheduler.dynamicresources.scenes import message_of
from tests.scheduler.gangs.scenes import GATES, gang, group_attempts, member, members, scheduled, with_cpus

WAITING = "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled"
TWO_PROFILES = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: default-scheduler}, {schedulerName: second}]
"""
TOO_SMALL = "0/1 nodes are available: 1 Insufficient cpu."


@on_loop
async def test_who_gives_way_is_told_how_many_could_be_placed_and_why_the_first_could_not() -> None:
    async with with_cpus(1) as it:
        await it.create(gang("pg", 3), *members(3))
        why = f"{WAITING}: 1 of 3 can be placed, pod default/pg-1 cannot: {TOO_SMALL}"
        assert await message_of(it, "pg-0") == why
        assert await it.told("pg-0", "FailedScheduling") == [why]
        condition = await scheduled(it)
        assert condition is not None
        assert (condition.status, condition.reason, condition.message) == ("False", "Unschedulable", why)


@on_loop
async def test_who_does_not_fit_is_told_why_it_does_not() -> None:
    async with with_cpus(1) as it:
        await it.create(gang("pg", 2), member("pg-0"), member("pg-1", cpu="2"))
        assert (await message_of(it, "pg-1")).startswith(TOO_SMALL)
        assert (await message_of(it, "pg-0")).endswith(f"pod default/pg-1 cannot: {TOO_SMALL}")


@on_loop
async def test_who_waits_for_members_that_cannot_be_tried_is_told_so() -> None:
    async with with_cpus(2) as it:
        gates = {"schedulingGates": [{"name": "example.com/wait"}]}
        await it.create(gang("pg", 2), member("pg-0", spec=gates), member("pg-1"))
        assert await message_of(it, "pg-1") == f"{WAITING}: 1 of 2 can be tried"
        found = await it.client.get(PODS, "pg-0", namespace="default")
        await it.client.patch(found, {"spec": {"schedulingGates": None}})
        await it.settle()
        assert [await it.node_of("pg-0"), await it.node_of("pg-1")] == ["node-0", "node-0"]


@on_loop
async def test_a_group_says_that_it_is_scheduled_and_goes_on_saying_so() -> None:
    async with with_cpus(2) as it:
        await it.create(gang("pg", 2), *members(2))
        condition = await scheduled(it)
        assert condition is not None
        assert (condition.status, condition.reason, condition.message) == ("True", "Scheduled", "")
        await it.create(member("pg-2"))
        assert await it.node_of("pg-2") == ""
        assert await scheduled(it) == condition


@on_loop
async def test_a_group_says_when_it_became_schedulable() -> None:
    async with with_cpus(1) as it:
        await it.create(gang("pg", 2), *members(2))
        before = await scheduled(it)
        await it.run_for(20)
        await it.create(node("more"))
        await it.run_for(20)
        after = await scheduled(it)
        assert before is not None
        assert after is not None
        assert (before.status, after.status) == ("False", "True")
        assert before.last_transition_time != after.last_transition_time


@on_loop
async def test_a_gang_that_is_refused_again_for_the_same_is_told_so_in_the_same_words() -> None:
    async with with_cpus(1) as it:
        await it.create(member("pg-0"), member("pg-1", cpu="999m"), gang("pg", 2))
        before = await it.find(POD_GROUPS, "pg")
        assert find_condition(before.status.conditions, "PodGroupScheduled") is not None
        await it.run_for(350)
        assert group_attempts(it, "unschedulable") == 2
        assert await it.find(POD_GROUPS, "pg") == before


@on_loop
async def test_what_others_wrote_into_the_status_of_a_group_stays() -> None:
    async with with_cpus(1) as it:
        await it.create(gang("pg", 1))
        other = {"type": "DisruptionTarget", "status": "False", "reason": "R", "message": ""}
        since = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
        await it.set_status(POD_GROUPS, "pg", {"conditions": [{**other, **since}]})
        await it.create(member("pg-0"))
        conditions = (await it.find(POD_GROUPS, "pg")).status.conditions
        assert [each.type for each in conditions] == ["DisruptionTarget", "PodGroupScheduled"]


@on_loop
async def test_a_basic_group_is_scheduled_with_its_first_pod() -> None:
    async with with_cpus(1) as it:
        await it.create(pod_group("pg", []), member("large", cpu="2"))
        condition = await scheduled(it)
        assert condition is not None
        assert (condition.status, condition.message) == ("False", "pod group is unschedulable")
        await it.create(*members(2))
        condition = await scheduled(it)
        assert condition is not None
        assert (condition.status, condition.reason) == ("True", "Scheduled")


@on_loop
async def test_members_for_different_schedulers_are_told_that_this_cannot_be() -> None:
    config = load_configuration(TWO_PROFILES, gates=GATES)
    async with with_cpus(4, config=config) as it:
        await it.create(gang("pg", 2), member("pg-0"), member("pg-1", spec={"schedulerName": "second"}))
        words = "all pods in a single pod group should have the same .spec.schedulerName set"
        assert words in await message_of(it, "pg-0")
        condition = await scheduled(it)
        assert condition is not None
        assert condition.reason == "SchedulerError"


@on_loop
async def test_attempts_at_groups_are_counted() -> None:
    async with with_cpus(1) as it:
        await it.create(gang("pg", 2), *members(2))
        assert group_attempts(it, "unschedulable") == 1
        await it.create(node("more"))
        await it.run_for(10)
        assert group_attempts(it, "scheduled") == 1
        assert it.metric("scheduler_podgroup_scheduling_algorithm_duration_seconds_count") == 2
