"""What happens between the choice of a node and the binding, and when that goes wrong."""

from __future__ import annotations

import asyncio
from typing import Any

from drakit.client import PODS, Client, InProcess
from drakit.scheduler import Scheduler
from drakit.scheduler.framework import PluginStatus
from tests.builders.cluster import Fatal
from tests.builders.podmanifests import node, pod
from tests.builders.schedulercluster import cluster, on_loop, scheduling
from tests.scheduler.stubborn import Stubborn


@on_loop
async def test_a_pod_that_could_not_be_bound_gives_everything_back_and_is_tried_again_after_its_backoff() -> None:
    plugin = Stubborn(pre_bind=PluginStatus.failed("the device is on fire"))
    async with scheduling(controllers=(), **plugin.options) as it:
        await it.create(node("a", room={"cpu": "1"}), pod("p", cpu="1"))
        condition = await it.condition("p")
        assert condition is not None
        assert (condition.status, condition.reason) == ("False", "SchedulerError")
        assert condition.message == 'running PreBind plugin "Stubborn": the device is on fire'
        assert "unreserve p" in plugin.asked
        await it.run_for(1)
        assert await it.node_of("p") == "a"


@on_loop
async def test_what_a_failed_binding_frees_goes_to_a_pod_that_waits_for_it() -> None:
    plugin = Stubborn(pre_bind=[PluginStatus.failed("no")])
    plugin.hold = asyncio.Event()
    async with scheduling(controllers=(), **plugin.options) as it:
        await it.create(node("a", room={"cpu": "1"}), pod("first", cpu="1"), pod("second", cpu="1"))
        assert await it.node_of("second") == ""
        plugin.hold.set()
        await it.settle()
        assert (await it.node_of("first"), await it.node_of("second")) == ("", "a")


@on_loop
async def test_a_pod_that_is_deleted_while_it_is_being_bound_makes_room_at_once() -> None:
    plugin = Stubborn()
    plugin.hold = asyncio.Event()
    async with scheduling(controllers=(), **plugin.options) as it:
        await it.create(node("a", room={"cpu": "1"}), pod("p", cpu="1"))
        assert it.scheduler is not None
        assert it.scheduler.cache.assumed_count == 1
        await it.delete(PODS, "p")
        assert it.scheduler.cache.assumed_count == 0
        plugin.hold.set()
        await it.settle()
        assert "unreserve p" in plugin.asked
        assert it.scheduler.queue.get((await it.create(pod("q", cpu="1"))).view.metadata.uid) is None
        assert await it.node_of("q") == "a"


@on_loop
async def test_a_pod_whose_binding_waits_says_where_it_will_go_until_it_is_there() -> None:
    plugin = Stubborn()
    plugin.hold, plugin.will_wait = asyncio.Event(), True
    async with scheduling(controllers=(), **plugin.options) as it:
        await it.create(node("a"), pod("p"))
        assert (await it.pod("p")).status.nominated_node_name == "a"
        plugin.hold.set()
        await it.settle()
        bound = await it.pod("p")
        assert (bound.spec.node_name, bound.status.nominated_node_name) == ("a", "")


@on_loop
async def test_a_binding_that_waited_in_vain_is_tried_again() -> None:
    plugin = Stubborn(pre_bind=[PluginStatus.failed("too late")])
    plugin.hold, plugin.will_wait = asyncio.Event(), True
    async with scheduling(controllers=(), **plugin.options) as it:
        await it.create(node("a"), pod("p"))
        plugin.hold.set()
        await it.settle()
        waiting = await it.pod("p")
        assert (waiting.spec.node_name, waiting.status.nominated_node_name) == ("", "")
        await it.run_for(1)
        assert await it.node_of("p") == "a"


@on_loop
async def test_a_pod_that_a_plugin_refuses_to_reserve_or_permit_for_gets_its_reason_and_nothing_stays_taken() -> None:
    for point in ("reserve", "permit"):
        answers: dict[str, Any] = {point: PluginStatus.unschedulable("not here", "nor there")}
        plugin = Stubborn(**answers)
        async with scheduling(controllers=(), **plugin.options) as it:
            await it.create(node("a"), node("b"), pod("p"))
            condition = await it.condition("p")
            assert condition is not None
            assert condition.message == "0/1 nodes are available: 1 nor there, 1 not here."
            assert plugin.asked[-1] == "unreserve p"
            assert it.scheduler is not None
            assert it.scheduler.cache.assumed_count == 0


@on_loop
async def test_a_plugin_that_raises_ends_the_attempt_and_not_the_scheduler() -> None:
    plugin = Stubborn(filter=[RuntimeError("bug")])
    async with scheduling(controllers=(), **plugin.options) as it:
        await it.create(node("a"), pod("p"))
        condition = await it.condition("p")
        assert condition is not None
        assert (condition.reason, condition.message) == ("SchedulerError", "bug")
        await it.run_for(1)
        assert await it.node_of("p") == "a"


@on_loop
async def test_what_plugins_did_about_a_pod_that_fits_nowhere_is_told_behind_the_reasons() -> None:
    plugin = Stubborn(
        pre_filter=PluginStatus.unresolvable("it is full"), post_filter=PluginStatus.unschedulable("nobody left")
    )
    async with scheduling(controllers=(), **plugin.options) as it:
        await it.create(node("a"), pod("p"))
        condition = await it.condition("p")
        assert condition is not None
        assert condition.message == "0/1 nodes are available: it is full. no new claims to deallocate, nobody left"


@on_loop
async def test_a_scheduler_that_is_stopped_finishes_what_it_is_binding() -> None:
    plugin = Stubborn()
    plugin.hold = asyncio.Event()
    async with scheduling(controllers=(), **plugin.options) as it:
        await it.create(node("a"), pod("p"))
        stopping = asyncio.create_task(it.stop_scheduler())
        await it.settle()
        plugin.hold.set()
        await stopping
        assert await it.node_of("p") == "a"
        assert await it.told("p", "Scheduled") == ["Successfully assigned default/p to a"]
        await it.create(pod("q"))
        assert await it.node_of("q") == ""


@on_loop
async def test_a_scheduler_that_is_stopped_does_not_wait_for_ever() -> None:
    plugin = Stubborn()
    plugin.hold = asyncio.Event()
    async with scheduling(controllers=(), **plugin.options) as it:
        await it.create(node("a"), pod("p"))
        stopping = asyncio.create_task(it.stop_scheduler())
        await it.run_for(30)
        await stopping
        assert await it.node_of("p") == ""
        await it.start_scheduler()
        assert await it.node_of("p") == "a"


@on_loop
async def test_a_scheduler_that_is_stopped_before_it_knows_the_cluster_ends() -> None:
    async with cluster() as it:
        silent = Fatal(InProcess(it.server))
        silent.died.set()
        scheduler = Scheduler(Client(silent, clock=it.clock), clock=it.clock)
        running = asyncio.create_task(scheduler.run())
        await asyncio.sleep(0)
        await scheduler.stop()
        await asyncio.wait_for(running, 5)
        assert not scheduler.is_synced
