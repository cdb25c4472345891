"""Gangs in trouble: plugins and writes that fail, schedulers that die, pods and groups that go in between."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from drakit.api.exchange import Request
from drakit.client import POD_GROUPS, PODS
from drakit.scheduler.framework import SUCCESS, PluginStatus, Unfinished
from tests.builders.manifests import claim, pod_group
from tests.builders.podmanifests import device_class, node, pod, resource_slice
from tests.builders.schedulercluster import SchedulingCluster, cluster, on_loop
from tests.scheduler.dynamicresources.faults import Unreliable, another_scheduler, answer, held
from tests.scheduler.dynamicresources.scenes import by_name, devices_of, message_of, users_of
from tests.scheduler.gangs.scenes import GATES, gang, member, members, named, placed, scheduled, with_cpus
from tests.scheduler.stubborn import Stubborn


def on_binding(request: Request) -> bool:
    return request.path.endswith("/binding")


async def bindable(it: SchedulingCluster, count: int) -> None:
    """A gang with room for all of it, that is complete at once."""
    await it.create(node("node-0", room={"cpu": str(count)}), *members(count), gang("pg", count))


# Plugins


@on_loop
async def test_a_plugin_that_refuses_the_chosen_node_costs_the_gang_its_places() -> None:
    plugin = Stubborn(reserve=[SUCCESS, SUCCESS, PluginStatus.unschedulable("not here")])
    async with with_cpus(3, **plugin.options) as it:
        await it.create(*members(3), gang("pg", 3))
        assert await placed(it, named(3)) == []
        assert it.scheduler is not None
        assert it.scheduler.cache.assumed_count == 0
        unreserved = {each for each in plugin.asked if each.startswith("unreserve")}
        assert unreserved == {f"unreserve {name}" for name in named(3)}
        assert "2 of 3 can be placed" in await message_of(it, "pg-0")


@on_loop
async def test_a_gang_waits_for_a_plugin_that_goes_on_beside_the_loop() -> None:
    async def finished() -> bool:
        return True

    plugin = Stubborn(filter=[SUCCESS, PluginStatus.failed(Unfinished("takes long", finished))])
    async with with_cpus(3, **plugin.options) as it:
        await it.create(*members(3), gang("pg", 3))
        assert await placed(it, named(3)) == named(3)
        assert plugin.asked.count("filter pg-1") == 2


@pytest.mark.parametrize("point", ["pre_filter", "filter", "reserve", "permit"])
def test_a_plugin_that_fails_for_one_member_costs_the_gang_one_attempt(point: str) -> None:
    async def run() -> None:
        answers: dict[str, Any] = {point: [SUCCESS, RuntimeError("broken")]}
        plugin = Stubborn(**answers)
        async with with_cpus(3, **plugin.options) as it:
            await it.create(*members(3), gang("pg", 3))
            assert await placed(it, named(3)) == []
            condition = await scheduled(it)
            assert condition is not None
            assert (condition.status, condition.reason) == ("False", "SchedulerError")
            await it.run_for(5)
            assert await placed(it, named(3)) == named(3)

    on_loop(run)()


@on_loop
async def test_a_member_beyond_the_minimum_that_fails_keeps_nobody_from_running() -> None:
    plugin = Stubborn(filter=[PluginStatus.failed("broken")])
    async with with_cpus(3, **plugin.options) as it:
        await it.create(*members(3), gang("pg", 2))
        assert len(await placed(it, named(3))) == 2
        await it.run_for(5)
        assert await placed(it, named(3)) == named(3)


@on_loop
async def test_whatever_fails_no_member_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    async with with_cpus(3) as it:
        await it.create(*members(3))
        assert it.scheduler is not None
        groups = it.scheduler._groups
        assert groups is not None

        def broken(*_: object) -> None:
            raise RuntimeError("broken")

        with monkeypatch.context() as patch:
            patch.setattr(groups._conditions, "tell", broken)
            patch.setattr(groups, "_bind", broken)
            await it.create(gang("pg", 3))
            assert await placed(it, named(3)) == []
            assert it.scheduler.cache.assumed_count == 0
        await it.run_for(5)
        assert await placed(it, named(3)) == named(3)


# Bindings


@pytest.mark.parametrize("failures", [1, 2, 3])
def test_members_whose_binding_fails_are_tried_again_and_the_others_stay(failures: int) -> None:
    async def run() -> None:
        async with cluster(GATES) as it:
            transport = Unreliable(it, *[answer(500, "InternalError")] * failures, concerns=on_binding)
            async with another_scheduler(it, transport):
                await bindable(it, 3)
                assert transport.met == failures
                assert len(await placed(it, named(3))) == 3 - failures
                await it.run_for(20)
                assert await placed(it, named(3)) == named(3)

    on_loop(run)()


@on_loop
async def test_members_that_could_not_be_bound_run_together_or_wait() -> None:
    """One of four is bound; three are left, of which two would fit: that is less than the minimum."""
    plugin = Stubborn(pre_bind=[SUCCESS, *[PluginStatus.failed("broken")] * 3])
    async with with_cpus(4, **plugin.options) as it:
        await it.create(*members(4))
        await it.client.create(gang("pg", 4))
        await it.client.create(pod("p", cpu="1"))
        await it.run_for(60)
        assert await it.node_of("p") == "node-0"
        assert len(await placed(it, named(4))) == 1
        await it.delete(PODS, "p")
        await it.run_for(60)
        assert await placed(it, named(4)) == named(4)


@on_loop
async def test_a_member_that_is_deleted_while_it_is_bound_leaves_the_others() -> None:
    async with cluster(GATES) as it:
        go = asyncio.Event()
        async with another_scheduler(it, Unreliable(it, held(go), concerns=on_binding)):
            await bindable(it, 2)
            [late] = set(named(2)) - set(await placed(it, named(2)))
            await it.delete(PODS, late)
            go.set()
            await it.create(member("pg-2"))
            await it.run_for(20)
            assert len(await placed(it, [*(set(named(2)) - {late}), "pg-2"])) == 2


# Groups


@on_loop
async def test_a_group_that_goes_before_its_members_are_tried_again_leaves_them_waiting_for_it() -> None:
    plugin = Stubborn(filter=[PluginStatus.failed("broken")])
    async with with_cpus(4, **plugin.options) as it:
        await it.create(*members(2), gang("pg", 2))
        await let_go(it)
        await it.run_for(60)
        assert await placed(it, named(2)) == []
        assert await message_of(it, "pg-0") == 'waiting for pods\'s pod group "pg" to appear in scheduling queue'
        await it.create(gang("pg", 2))
        await it.run_for(60)
        assert await placed(it, named(2)) == named(2)


@on_loop
async def test_a_gang_that_becomes_a_basic_group_runs_as_far_as_it_fits() -> None:
    async with with_cpus(1) as it:
        await it.create(*members(2), gang("pg", 2))
        await let_go(it)
        await it.create(pod_group("pg", []))
        await it.run_for(60)
        assert len(await placed(it, named(2))) == 1


async def let_go(it: SchedulingCluster) -> None:
    """Delete the group, whose protection nobody else is there to lift."""
    await it.delete(POD_GROUPS, "pg")
    found = await it.find(POD_GROUPS, "pg")
    if found is not None:
        await it.client.patch(found, {"metadata": {"finalizers": None}})
        await it.settle()
    assert await it.find(POD_GROUPS, "pg") is None


# Schedulers


@pytest.mark.parametrize("last", range(1, 13))
def test_a_scheduler_that_dies_after_any_write_leaves_a_gang_that_the_next_one_completes(last: int) -> None:
    async def run() -> None:
        async with cluster(GATES) as it:
            await it.create(device_class(), node("node-1"), resource_slice("s", "d0"))
            await it.start_scheduler(dies_after=last)
            await it.create(claim(), *members(3, claims=[by_name("c")]), gang("pg", 3, [by_name("c")]))
            assert it.scheduler_transport is not None
            assert it.scheduler_transport.died.is_set() or last > 9
            await it.kill_scheduler()
            await it.start_scheduler()
            await it.run_for(20)
            assert await placed(it, named(3)) == named(3)
            assert (await users_of(it), await devices_of(it)) == (["pg"], ["d0"])

    on_loop(run)()
