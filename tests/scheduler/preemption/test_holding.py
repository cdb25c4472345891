"""What victims leave is kept for the pod that they were evicted for."""

from __future__ import annotations

import asyncio

from drakit.client import CLAIMS, PODS
from tests.builders.podmanifests import claim, node, resource_slice
from tests.builders.schedulercluster import SchedulingCluster, on_loop
from tests.scheduler.dynamicresources.faults import Unreliable, another_scheduler, answer, held
from tests.scheduler.preemption.scenes import add, devices_of, end, leaving, message_of, preempting, scene, user


def of_two(name: str) -> dict[str, object]:
    made = claim(name)
    made["spec"]["devices"]["requests"][0]["exactly"]["count"] = 2
    return made


async def go_for_two(it: SchedulingCluster, priority: str) -> None:
    """Both devices are in use by pods of low priority when a pod comes that wants both."""
    await add(it, "a", "low")
    await add(it, "b", "low")
    await it.create(of_two("c"), user("c", priority, "c"))


@on_loop
async def test_a_pod_of_lower_priority_does_not_get_what_a_victim_left() -> None:
    """Two victims go one after the other; in between, the device of the first is free, and kept."""
    async with scene("d0", "d1") as it:
        await go_for_two(it, "high")
        assert await leaving(it) == ["a", "b"]
        await end(it, "a")
        await add(it, "thief", "middle")
        await it.run_for(10)
        assert await it.node_of("thief") == ""
        await end(it, "b")
        await it.run_for(10)
        assert await it.node_of("c") == "node-1"
        assert sorted(await devices_of(it, "c")) == ["d0", "d1"]
        assert await it.node_of("thief") == ""


@on_loop
async def test_a_pod_of_the_same_priority_may_take_it() -> None:
    async with scene("d0", "d1") as it:
        await go_for_two(it, "middle")
        await end(it, "a")
        await add(it, "equal", "middle")
        await it.run_for(10)
        assert await it.node_of("equal") == "node-1"
        await end(it, "b")
        await it.run_for(30)
        assert await it.node_of("c") == ""
        assert await leaving(it) == []


@on_loop
async def test_a_pod_of_higher_priority_may_take_it_and_evicts_nobody_more() -> None:
    async with scene("d0") as it:
        await add(it, "a", "low")
        await add(it, "b", "middle")
        await add(it, "c", "high")
        assert await leaving(it) == ["a"]
        assert [(await it.pod(each)).status.nominated_node_name for each in "bc"] == ["", "node-1"]
        await end(it, "a")
        await it.run_for(10)
        assert await it.node_of("c") == "node-1"
        assert await it.node_of("b") == ""
        assert await leaving(it) == []


@on_loop
async def test_what_is_kept_is_free_when_its_pod_gives_up() -> None:
    async with scene("d0", "d1") as it:
        await go_for_two(it, "high")
        await end(it, "a")
        await add(it, "d", "low")
        await it.run_for(10)
        assert await it.node_of("d") == ""
        await it.delete(PODS, "c")
        await it.run_for(10)
        assert await it.node_of("d") == "node-1"


@on_loop
async def test_what_is_kept_is_free_when_its_pod_finds_another_place() -> None:
    async with scene("d0", "d1") as it:
        await add(it, "a", "low")
        await add(it, "b", "low")
        await it.create(of_two("c"), user("c", "high", "c", tolerations=[{"operator": "Exists"}]))
        await end(it, "a")
        await add(it, "d", "low")
        only_c = {"taints": [{"key": "only-c", "effect": "NoSchedule"}]}
        await it.create(node("node-2", spec=only_c), resource_slice("more", "e0", "e1", node="node-2", pool="more"))
        await it.run_for(10)
        assert await it.node_of("c") == "node-2"
        assert await it.node_of("d") == "node-1"


@on_loop
async def test_room_on_the_node_is_kept_too() -> None:
    async with scene() as it:
        await it.create(user("a", "low", cpu="4"), user("b", "low", cpu="4"))
        await it.create(user("c", "high", cpu="8"))
        assert await leaving(it) == ["a", "b"]
        await end(it, "a")
        await it.create(user("thief", "middle", cpu="1"))
        await it.run_for(10)
        assert await it.node_of("thief") == ""
        await end(it, "b")
        await it.run_for(10)
        assert await it.node_of("c") == "node-1"


@on_loop
async def test_nobody_else_is_evicted_while_victims_are_leaving() -> None:
    async with scene("d0", "d1") as it:
        await add(it, "a", "low")
        await add(it, "b", "middle")
        await add(it, "c", "high")
        assert await leaving(it) == ["a"]
        await it.create(resource_slice("useless", node="node-1", pool="useless"))  # wakes the pod
        await it.run_for(400)
        assert await leaving(it) == ["a"]
        assert (await message_of(it, "c")).endswith(
            "preemption: not eligible due to a terminating pod on the nominated node."
        )
        assert (await it.pod("c")).status.nominated_node_name == "node-1"


@on_loop
async def test_a_scheduler_that_is_started_again_goes_on_with_it() -> None:
    async with scene("d0", "d1") as it:
        await go_for_two(it, "high")
        await it.kill_scheduler()
        await it.start_scheduler(config=preempting())
        await it.run_for(10)
        await end(it, "a")
        await add(it, "thief", "middle")
        await it.run_for(10)
        assert await it.node_of("thief") == ""
        await end(it, "b")
        await it.run_for(10)
        assert await it.node_of("c") == "node-1"


@on_loop
async def test_what_is_kept_stays_so_when_the_binding_fails() -> None:
    async with scene("d0") as it:
        await add(it, "a", "low")
        await it.kill_scheduler()
        fails = Unreliable(
            it, *[answer(403, "Forbidden")] * 2, concerns=lambda request: "/resourceclaims/b" in request.path
        )
        async with another_scheduler(it, fails, config=preempting()) as scheduler:
            await add(it, "b", "high")
            await it.client.create(claim("thief"))
            await it.client.create(user("thief", "middle", "thief"))
            await end(it, "a")
            await it.run_for(60)
            assert fails.met == 2
            assert await it.node_of("b") == "node-1"
            assert await it.node_of("thief") == ""
            assert scheduler.queue.pending()["unschedulable"] == 1


def of_memory(name: str, amount: str) -> dict[str, object]:
    made = claim(name)
    made["spec"]["devices"]["requests"][0]["exactly"]["capacity"] = {"requests": {"memory": amount}}
    return made


@on_loop
async def test_a_share_that_is_being_stored_does_not_collide_with_what_is_kept() -> None:
    """For a moment three shares are in the ledger: the victim's, what is kept for its successor, and this one."""
    async with scene() as it:
        shared = resource_slice("slice")
        memory = {"memory": {"value": "10Gi"}}
        shared["spec"]["devices"] = [{"name": "d0", "allowMultipleAllocations": True, "capacity": memory}]
        await it.create(shared, of_memory("a", "6Gi"), user("a", "low", "a"))
        await it.kill_scheduler()
        release = asyncio.Event()
        slow = Unreliable(it, held(release), concerns=lambda request: "/resourceclaims/b/status" in request.path)
        async with another_scheduler(it, slow, config=preempting()):
            await it.create(of_memory("b", "4Gi"), user("b", "middle", "b"))
            await it.create(of_memory("c", "6Gi"), user("c", "high", "c"))
            assert await leaving(it) == ["a"]
            release.set()
            await it.settle()
            assert await it.node_of("b") == "node-1"
            await end(it, "a")
            await it.run_for(10)
            assert await it.node_of("c") == "node-1"


@on_loop
async def test_a_claim_that_was_freed_is_not_shared_by_who_has_to_wait() -> None:
    """The victim's claim stays, and is to lose its devices; another pod of low priority names it."""
    async with scene("d0") as it:
        await it.create(claim("shared"), user("a", "low", "shared"))
        await add(it, "b", "high")
        await end(it, "a")
        await it.create(user("late", "low", "shared"))
        await it.run_for(30)
        assert await it.node_of("b") == "node-1"
        assert await it.node_of("late") == ""
        found = await it.find(CLAIMS, "shared")
        assert found.status.allocation is None
