"""What wakes a gang wakes it once, and nothing else does."""

from __future__ import annotations

from drakit.client import POD_GROUPS, PODS
from tests.builders.podmanifests import by_name, by_template, claim, device_class, node, pod, resource_slice, template
from tests.builders.schedulercluster import SchedulingCluster, on_loop, scheduling
from tests.scheduler.gangs.scenes import (
    GATES,
    gang,
    group_attempts,
    member,
    members,
    named,
    placed,
    scheduled,
    with_cpus,
)


def attempts(it: SchedulingCluster) -> float:
    return group_attempts(it, "unschedulable") + group_attempts(it, "scheduled")


@on_loop
async def test_a_gang_that_does_not_fit_is_left_alone_until_something_happens() -> None:
    async with with_cpus(2) as it:
        await it.create(gang("pg", 3), *members(3))
        await it.run_for(200)
        assert attempts(it) == 1


@on_loop
async def test_a_gang_that_waits_too_long_is_tried_again_together() -> None:
    async with with_cpus(2) as it:
        await it.create(gang("pg", 3), *members(3))
        await it.run_for(350)
        assert attempts(it) == 2


@on_loop
async def test_room_that_is_made_wakes_the_gang_once() -> None:
    async with with_cpus(3) as it:
        await it.create(pod("p", cpu="1"), gang("pg", 3), *members(3))
        assert attempts(it) == 1
        await it.delete(PODS, "p")
        await it.run_for(60)
        assert await placed(it, named(3)) == named(3)
        assert attempts(it) == 2


@on_loop
async def test_room_that_is_not_enough_wakes_the_gang_once_too() -> None:
    async with with_cpus(1) as it:
        await it.create(pod("p", cpu="1"), gang("pg", 3), *members(3))
        await it.delete(PODS, "p")
        await it.run_for(60)
        assert await placed(it, named(3)) == []
        assert attempts(it) == 2


@on_loop
async def test_a_new_member_wakes_the_gang_once() -> None:
    async with with_cpus(2) as it:
        await it.create(gang("pg", 3), *members(3))
        await it.create(member("small", cpu="0"))
        await it.run_for(60)
        assert len(await placed(it, [*named(3), "small"])) == 3
        assert attempts(it) == 2, "the one that is left is not tried alone either: nothing happened that could help it"


@on_loop
async def test_a_group_that_comes_back_wakes_its_members() -> None:
    async with with_cpus(1) as it:
        await it.create(gang("pg", 2), *members(2))
        await it.delete(POD_GROUPS, "pg")
        found = await it.find(POD_GROUPS, "pg")
        if found is not None:  # nobody is there to let it go
            await it.client.patch(found, {"metadata": {"finalizers": None}})
            await it.settle()
        await it.run_for(60)
        assert await placed(it, named(2)) == []
        await it.create(gang("pg", 1))
        await it.run_for(60)
        assert len(await placed(it, named(2))) == 1


@on_loop
async def test_a_place_for_another_member_may_be_what_helps() -> None:
    """The large one does not fit onto the new node, but a small one does, and leaves its own to the large one."""
    async with with_cpus(100) as it:
        await it.create(pod("filler", cpu="97"), gang("pg", 3), *members(2), member("large", cpu="2"))
        assert await placed(it, [*named(2), "large"]) == []
        await it.create(node("small", room={"cpu": "1900m"}))
        await it.run_for(60)
        assert await placed(it, [*named(2), "large"]) == [*named(2), "large"]


@on_loop
async def test_what_a_group_is_told_of_its_attempt_is_no_reason_for_another() -> None:
    async with scheduling(gates=GATES, controllers=()) as it:
        await it.create(device_class(), node("node-1"), resource_slice("s", "d0"))
        for number in range(2):
            await it.create(claim(f"c{number}"), member(f"pg-{number}", claims=[by_name(f"c{number}")]))
        await it.create(gang("pg", 2))
        await it.run_for(200)
        assert await scheduled(it) is not None
        assert attempts(it) == 1


@on_loop
async def test_devices_that_come_wake_the_gang_once() -> None:
    async with scheduling(gates=GATES) as it:
        await it.create(device_class(), node("node-1"), resource_slice("s", "d0"), template(), gang("pg", 2))
        await it.create(*members(2, claims=[by_template()]))
        await it.run_for(20)
        assert await placed(it, named(2)) == []
        before = attempts(it)
        await it.create(resource_slice("t", "d1", pool="other"))
        await it.run_for(60)
        assert await placed(it, named(2)) == named(2)
        assert attempts(it) == before + 1
