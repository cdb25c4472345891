"""Plain pods: placed, refused, woken, told about."""

from __future__ import annotations

from drakit.client import EVENTS, PODS, bind
from drakit.scheduler.framework import PluginStatus, Unfinished
from tests.builders.podmanifests import node, pod
from tests.builders.schedulercluster import on_loop, scheduling
from tests.scheduler.stubborn import Stubborn


@on_loop
async def test_a_pod_is_bound_to_a_node_that_fits_and_an_event_tells() -> None:
    async with scheduling(controllers=()) as it:
        await it.create(node("small", room={"cpu": "1"}), node("large", room={"cpu": "4"}))
        await it.create(pod("p", cpu="2"))
        assert await it.node_of("p") == "large"
        assert await it.told("p") == ["Successfully assigned default/p to large"]
        scheduled = await it.condition("p")
        assert scheduled is not None
        assert scheduled.status == "True"


@on_loop
async def test_pods_do_not_take_more_than_a_node_has() -> None:
    async with scheduling(controllers=()) as it:
        await it.create(node("a", room={"cpu": "2"}), node("b", room={"cpu": "2"}))
        await it.create(*(pod(f"p{number}", cpu="1") for number in range(5)))
        placed = [await it.node_of(f"p{number}") for number in range(5)]
        assert sorted(placed) == ["", "a", "a", "b", "b"]


@on_loop
async def test_a_pod_that_fits_nowhere_is_told_why_in_one_sentence() -> None:
    async with scheduling(controllers=()) as it:
        await it.create(node("a", room={"cpu": "1"}), node("b", spec={"unschedulable": True}), node("c", zone="x"))
        await it.create(pod("p", cpu="2", spec={"nodeSelector": {"zone": "y"}}))
        condition = await it.condition("p")
        assert condition is not None
        assert (condition.status, condition.reason) == ("False", "Unschedulable")
        assert condition.message.startswith(
            "0/3 nodes are available: 1 node(s) were unschedulable, "
            "2 node(s) didn't match Pod's node affinity/selector."
        )
        assert await it.told("p", "FailedScheduling") == [condition.message]


@on_loop
async def test_a_pod_is_tried_again_at_once_when_a_plugin_has_finished_beside_the_loop() -> None:
    async def finished() -> bool:
        return True

    plugin = Stubborn(filter=PluginStatus.failed(Unfinished("takes long", finished)))
    async with scheduling(controllers=(), **plugin.options) as it:
        await it.create(node("a"), pod("p"))
        assert await it.node_of("p") == "a"
        assert await it.told("p", "FailedScheduling") == []
        assert plugin.asked.count("filter p") == 2


@on_loop
async def test_a_pod_is_told_when_a_plugin_has_not_finished_beside_the_loop() -> None:
    async def finished() -> bool:
        return False

    plugin = Stubborn(filter=PluginStatus.failed(Unfinished("takes long", finished)))
    async with scheduling(controllers=(), **plugin.options) as it:
        await it.create(node("a"), pod("p"))
        (told,) = await it.told("p", "FailedScheduling")
        assert "takes long" in told
        assert plugin.asked.count("filter p") == 1


@on_loop
async def test_without_nodes_the_pod_waits_for_one() -> None:
    async with scheduling(controllers=()) as it:
        await it.create(pod("p"))
        condition = await it.condition("p")
        assert condition is not None
        assert condition.message == "no nodes available to schedule pods"
        await it.create(node("a"))
        await it.run_for(10)
        assert await it.node_of("p") == "a"


@on_loop
async def test_a_pod_that_ends_makes_room_for_another() -> None:
    async with scheduling(controllers=()) as it:
        await it.create(node("a", room={"cpu": "1"}), pod("first", cpu="1"), pod("second", cpu="1"))
        assert await it.node_of("second") == ""
        await it.set_status(PODS, "first", {"phase": "Succeeded"})
        await it.run_for(2)
        assert await it.node_of("second") == "a"


@on_loop
async def test_a_condition_is_written_once_for_one_reason() -> None:
    async with scheduling(controllers=()) as it:
        await it.create(node("a", room={"cpu": "1"}), pod("p", cpu="2"))
        before = await it.pod("p")
        await it.kill_scheduler()
        await it.start_scheduler()
        assert it.metric("scheduler_schedule_attempts_total", result="unschedulable", profile="default-scheduler") == 1
        assert await it.pod("p") == before
        assert [each.count for each in await it.all(EVENTS)] == [2]


@on_loop
async def test_pods_of_other_schedulers_are_left_alone_and_count_once_they_are_bound() -> None:
    async with scheduling(controllers=()) as it:
        await it.create(node("a", room={"cpu": "1"}))
        await it.create(pod("theirs", cpu="1", spec={"schedulerName": "other"}))
        assert (await it.pod("theirs")).status.conditions == ()
        await it.create(pod("bound", cpu="1", node="a"), pod("ours", cpu="1"))
        assert await it.node_of("ours") == ""


@on_loop
async def test_a_gated_pod_is_tried_when_its_gates_are_gone() -> None:
    async with scheduling(controllers=()) as it:
        await it.create(node("a"), pod("p", spec={"schedulingGates": [{"name": "example.com/wait"}]}))
        condition = await it.condition("p")
        assert condition is not None
        assert condition.reason == "SchedulingGated"
        assert it.metric("scheduler_pending_pods", queue="gated") == 1
        found = await it.client.get(PODS, "p", namespace="default")
        await it.client.patch(found, {"spec": {"schedulingGates": None}})
        await it.settle()
        assert await it.node_of("p") == "a"


@on_loop
async def test_higher_priority_goes_first() -> None:
    async with scheduling(controllers=()) as it:
        priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}}
        await it.create({**priority, "value": 1000})
        await it.create(pod("low", cpu="1"), pod("high", cpu="1", spec={"priorityClassName": "high"}))
        await it.create(node("a", room={"cpu": "1"}))
        await it.run_for(10)
        assert (await it.node_of("high"), await it.node_of("low")) == ("a", "")


@on_loop
async def test_a_pod_on_its_way_out_is_not_placed() -> None:
    async with scheduling(controllers=()) as it:
        await it.create(pod("p", finalizers=["example.com/hold"]))
        await it.delete(PODS, "p")
        await it.create(node("a"))
        await it.run_for(10)
        assert await it.node_of("p") == ""


@on_loop
async def test_a_pod_that_somebody_else_binds_leaves_the_queue_and_takes_its_room() -> None:
    async with scheduling(controllers=()) as it:
        await it.create(node("a", room={"cpu": "1"}, spec={"unschedulable": True}), pod("p", cpu="1"))
        await bind(it.client, await it.client.get(PODS, "p", namespace="default"), "a")
        await it.settle()
        assert it.metric("scheduler_pending_pods", queue="unschedulable") == 0
        assert it.scheduler is not None
        assert [info.requested["cpu"] for info in it.scheduler.cache.all()] == [1000]


@on_loop
async def test_a_pod_that_comes_back_under_the_same_name_is_another_pod() -> None:
    async with scheduling(controllers=()) as it:
        await it.create(node("a", room={"cpu": "1"}), pod("p", cpu="2"))
        await it.client.delete(PODS, "p", namespace="default", grace=0)
        await it.client.create(pod("p", cpu="1"))
        await it.settle()
        assert await it.node_of("p") == "a"
