"""Which pod is tried next."""

from __future__ import annotations

import asyncio

import pytest

from drakit.base.clock import FakeClock
from drakit.informers import QueueClosed
from tests.client.servers import on_loop, turns
from tests.scheduler.queue.pods import FIT, NODE_ADDED, names, popped, queue, queued_pod, refused, where


def test_higher_priority_comes_first_then_who_was_queued_first() -> None:
    clock = FakeClock()
    made = queue(clock)
    for name, priority in (("low", -5), ("none", None), ("first", 7), ("second", 7)):
        made.add(queued_pod(name, priority=priority))
        clock.advance(1)
    assert names(made) == ["first", "second", "none", "low"]


def test_a_pod_that_was_tried_queues_up_behind_those_that_came_meanwhile() -> None:
    clock = FakeClock()
    made = queue(clock)
    made.add(queued_pod("tried"))
    queued = popped(made)
    clock.advance(1)
    made.add(queued_pod("later"))
    clock.advance(1)
    made.put_back(queued, unschedulable=[FIT])
    made.move(NODE_ADDED, None, "node")
    clock.advance(10)
    assert names(made) == ["later", "tried"]


def test_a_priority_that_changes_while_a_pod_waits_counts_at_once() -> None:
    made = queue()
    made.add(queued_pod("a", priority=1))
    made.add(queued_pod("b", priority=2))
    made.update(queued_pod("a", priority=1), queued_pod("a", priority=3))
    made.update(queued_pod("a", priority=3), queued_pod("a", priority=1))
    made.update(queued_pod("a", priority=1), queued_pod("a", priority=3))
    assert names(made) == ["a", "b"]


def test_a_pod_that_is_added_twice_is_tried_once_in_its_newest_form() -> None:
    made = queue()
    made.add(queued_pod("a"))
    made.add(queued_pod("a", priority=9))
    assert popped(made).priority == 9
    assert made.pop_now() is None


def test_an_update_of_a_pod_that_is_not_known_adds_it() -> None:
    made = queue()
    made.update(queued_pod("a"), queued_pod("a"))
    assert names(made) == ["a"]


@on_loop
async def test_pop_waits_until_a_pod_comes() -> None:
    made = queue()
    first, second = asyncio.create_task(made.pop()), asyncio.create_task(made.pop())
    await turns()
    assert not first.done()
    made.add(queued_pod("a"))
    await turns()
    assert (await first).pod.view.metadata.name == "a"
    assert not second.done()
    made.add(queued_pod("b"))
    assert (await second).pod.view.metadata.name == "b"


@on_loop
async def test_a_wake_up_that_comes_to_a_cancelled_popper_goes_to_the_next() -> None:
    made = queue()
    first, second = asyncio.create_task(made.pop()), asyncio.create_task(made.pop())
    await turns()
    made.add(queued_pod("a"))
    first.cancel()
    assert (await second).pod.view.metadata.name == "a"


@on_loop
async def test_closing_ends_the_wait_and_the_timers() -> None:
    made = queue()
    running, waiting = asyncio.create_task(made.run()), asyncio.create_task(made.pop())
    await turns()
    made.close()
    await running
    with pytest.raises(QueueClosed):
        await waiting
    made.add(queued_pod("a"))
    assert made.pop_now() is None


def test_a_deleted_pod_is_nowhere_wherever_it_was() -> None:
    clock = FakeClock()
    made = queue(clock)
    made.add(queued_pod("active"))
    made.add(queued_pod("gated", gate="g"))
    refused(made, "unschedulable", FIT)
    refused(made, "backoff")
    assert made.pending() == {"active": 1, "backoff": 1, "unschedulable": 1, "gated": 1}
    for name in ("active", "gated", "unschedulable", "backoff", "unknown"):
        made.delete(f"uid-{name}")
        assert where(made, name) == "nowhere"
    assert set(made.pending().values()) == {0}
    clock.advance(1000)
    made.flush()
    assert names(made) == []


def test_it_is_idle_when_nothing_can_be_tried_and_nothing_is_under_way() -> None:
    clock = FakeClock()
    made = queue(clock)
    seen = [made.is_idle]
    made.add(queued_pod("a"))
    seen.append(made.is_idle)
    queued = popped(made)
    seen.append(made.is_idle)
    made.put_back(queued, error=True)
    seen.append(made.is_idle)
    clock.advance(1)
    seen.append(made.is_idle)
    made.done(popped(made).uid)
    seen.append(made.is_idle)
    assert seen == [True, False, False, True, False, True]
