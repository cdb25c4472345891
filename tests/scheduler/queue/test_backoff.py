"""How long a pod waits that could not be scheduled."""

from __future__ import annotations

import asyncio

import pytest

from drakit.base.clock import FakeClock
from drakit.scheduler.queue import SchedulingQueue
from tests.client.servers import on_loop
from tests.scheduler.queue.pods import (
    CLAIM_CHANGED,
    CLAIMS,
    FIT,
    NODE_ADDED,
    names,
    popped,
    queue,
    queued_pod,
    refused,
    where,
)


def seconds_until_popped(made: SchedulingQueue, clock: FakeClock) -> float:
    begun = clock.monotonic()
    while (queued := made.pop_now()) is None:
        assert clock.monotonic() < begun + 400
        clock.advance(0.5)
        made.flush()
    made.put_back(queued, unschedulable=[FIT])
    return clock.monotonic() - begun


def test_backoff_doubles_from_one_second_to_ten() -> None:
    clock = FakeClock()
    made = queue(clock)
    refused(made, "a", FIT)
    waits = []
    for _ in range(6):
        made.move(NODE_ADDED, None, "node")
        waits.append(seconds_until_popped(made, clock))
    assert waits == [1, 2, 4, 8, 10, 10]


def test_backoff_never_overflows() -> None:
    made = queue()
    queued = refused(made, "a", FIT)
    queued.refusals = 100_000
    made.put_back(made.take([queued.uid])[0], unschedulable=[FIT])
    assert queued.backoff_until == 10


def test_a_pod_whose_backoff_is_over_is_active_as_soon_as_it_is_woken() -> None:
    clock = FakeClock()
    made = queue(clock)
    refused(made, "a", FIT)
    clock.advance(1)
    made.move(NODE_ADDED, None, "node")
    assert where(made, "a") == "active"


def test_errors_back_off_by_their_own_count_which_a_refusal_resets() -> None:
    clock = FakeClock()
    made = queue(clock)
    made.add(queued_pod("a"))
    for plugins, wait in (([FIT], 1), ([FIT], 2), ([], 1), ([], 2), ([FIT], 4), ([], 1)):
        queued = made.take(["uid-a"])[0]
        made.put_back(queued, unschedulable=plugins)
        assert queued.backoff_until - clock.monotonic() == wait


@pytest.mark.parametrize("plugins", [[], [FIT]])
def test_an_error_is_tried_again_after_backoff_without_any_event(plugins: list[str]) -> None:
    clock = FakeClock()
    made = queue(clock)
    made.add(queued_pod("a"))
    made.put_back(popped(made), unschedulable=plugins, error=True)
    assert where(made, "a") == "backoff"
    clock.advance(0.99)
    assert names(made) == []
    clock.advance(0.01)
    assert names(made) == ["a"]


def test_with_nothing_else_to_do_a_woken_pod_is_tried_before_its_time_but_not_a_failed_one() -> None:
    made = queue(pop_early=True)
    refused(made, "failed")
    refused(made, "woken", FIT)
    made.move(NODE_ADDED, None, "node")
    made.add(queued_pod("new"))
    assert names(made) == ["new", "woken"]
    assert where(made, "failed") == "backoff"


def test_of_pods_that_are_woken_together_the_most_important_is_tried_first_though_its_time_comes_later() -> None:
    clock = FakeClock()
    made = queue(clock, pop_early=True)
    for name, priority in (("low", 0), ("high", 2), ("middle", 1)):
        made.add(queued_pod(name, priority=priority))
        made.put_back(made.take([f"uid-{name}"])[0], unschedulable=[FIT])
        clock.advance(0.01)
    made.move(NODE_ADDED, None, "node")
    assert names(made) == ["high", "middle", "low"]


def test_a_pod_whose_time_comes_much_later_is_not_tried_early_before_others_whatever_its_priority() -> None:
    clock = FakeClock()
    made = queue(clock, pop_early=True)
    for name, priority in (("low", 0), ("high", 2)):
        made.add(queued_pod(name, priority=priority))
        made.put_back(made.take([f"uid-{name}"])[0], unschedulable=[FIT])
        clock.advance(0.9)
    made.put_back(made.take(["uid-high"])[0], unschedulable=[FIT])
    made.move(NODE_ADDED, None, "node")
    assert names(made) == ["low", "high"]


def test_what_a_plugin_awaits_skips_backoff() -> None:
    made = queue()
    refused(made, "a", FIT, pending=[CLAIMS])
    refused(made, "b", CLAIMS)
    made.move(CLAIM_CHANGED, None, ["a", "b"])
    assert where(made, "a") == "active"
    assert where(made, "b") == "backoff"


def test_another_plugin_s_event_does_not_skip_backoff() -> None:
    made = queue()
    refused(made, "a", FIT, pending=[CLAIMS])
    made.move(NODE_ADDED, None, "node")
    assert where(made, "a") == "backoff"


def test_after_five_minutes_a_pod_is_tried_whatever_happened() -> None:
    clock = FakeClock()
    made = queue(clock)
    refused(made, "a", FIT)
    clock.advance(299)
    made.flush()
    assert where(made, "a") == "unschedulable"
    clock.advance(1)
    made.flush()
    assert names(made) == ["a"]


@on_loop
async def test_the_timer_brings_pods_back_on_time() -> None:
    clock = FakeClock()
    made = queue(clock)
    running = asyncio.create_task(made.run())
    refused(made, "late", FIT)
    await clock.run_for(0.5)
    refused(made, "soon")
    popper = asyncio.create_task(made.pop())
    await clock.run_for(0.99)
    assert not popper.done()
    await clock.run_for(0.01)
    assert (await popper).pod.view.metadata.name == "soon"
    popper = asyncio.create_task(made.pop())
    await clock.run_for(300 - 1.5 - 0.01)
    assert not popper.done()
    await clock.run_for(0.01)
    assert (await popper).pod.view.metadata.name == "late"
    made.close()
    await running
