"""Work queues: each key once, none lost, all in time."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest

from drakit.base.clock import FakeClock
from drakit.informers import Bucket, QueueClosed, RetryLimits, WorkQueue
from tests.client.servers import on_loop, turns


def queue(clock: FakeClock | None = None) -> WorkQueue[str]:
    return WorkQueue(clock or FakeClock())


def test_a_key_waits_once_however_often_it_is_added() -> None:
    made = queue()
    for key in "abab":
        made.add(key)
    assert made.ready() == ["a", "b"]
    assert (made.take(), made.take(), made.take()) == ("a", "b", None)


def test_a_key_that_is_added_while_it_is_worked_on_comes_again_afterwards() -> None:
    made = queue()
    made.add("a")
    assert made.take() == "a"
    made.add("a")
    made.add("a")
    assert made.take() is None  # never two workers on one key
    made.done("a")
    assert made.take() == "a"
    made.done("a")
    assert made.ready() == []


def test_a_delayed_key_comes_when_its_time_has_come() -> None:
    clock = FakeClock()
    made = queue(clock)
    made.add_after("a", 5)
    made.add_after("a", 9)  # later than it is due already: that says nothing new
    clock.advance(4.9)
    assert made.ready() == []
    clock.advance(0.2)
    assert made.ready() == ["a"]
    assert made.take() == "a"
    made.done("a")
    clock.advance(60)
    assert made.ready() == []


def test_a_sooner_time_counts() -> None:
    clock = FakeClock()
    made = queue(clock)
    made.add_after("a", 9)
    made.add_after("a", 2)
    clock.advance(2)
    assert made.ready() == ["a"]
    assert made.delayed == 0


def test_each_retry_waits_twice_as_long_until_it_is_forgotten() -> None:
    clock = FakeClock()
    limits: RetryLimits[str] = RetryLimits(clock)
    waits = [limits.when("a") for _ in range(20)]
    assert waits[:4] == pytest.approx([0.005, 0.01, 0.02, 0.04])
    assert max(waits) == 1000.0
    assert limits.when("b") == pytest.approx(0.005)
    limits.forget("a")
    assert limits.when("a") == pytest.approx(0.005)
    assert limits.failures("a") == 1


def test_retries_of_all_keys_together_are_bounded() -> None:
    clock = FakeClock()
    limits: RetryLimits[int] = RetryLimits(clock)
    waits = [limits.when(key) for key in range(130)]
    assert max(waits[:100]) == pytest.approx(0.005)
    assert waits[129] == pytest.approx(3.0)
    clock.advance(13)
    assert limits.when(1000) == pytest.approx(0.005)


def test_a_bucket_never_holds_more_than_its_burst() -> None:
    clock = FakeClock()
    bucket = Bucket(clock, rate=2, burst=3)
    clock.advance(1000)
    assert [bucket.take() for _ in range(5)] == [0, 0, 0, 0.5, 1.0]


@on_loop
async def test_waiting_workers_are_woken_one_per_key() -> None:
    clock = FakeClock()
    made = queue(clock)
    workers = [asyncio.ensure_future(made.get()) for _ in range(3)]
    await turns(3)
    made.add("a")
    made.add_after("b", 10)
    await turns(5)
    assert [worker.done() for worker in workers] == [True, False, False]
    clock.advance(10)
    await turns(5)
    assert [worker.done() for worker in workers] == [True, True, False]
    made.close()
    with pytest.raises(QueueClosed):
        await workers[2]
    assert [await worker for worker in workers[:2]] == ["a", "b"]


@on_loop
async def test_a_sooner_key_wakes_a_worker_that_waits_for_a_later_one() -> None:
    clock = FakeClock()
    made = queue(clock)
    worker = asyncio.ensure_future(made.get())
    await turns(3)
    made.add_after("late", 100)
    await turns(3)
    made.add_after("soon", 1)
    await turns(3)
    clock.advance(1)
    assert await worker == "soon"
    made.close()


@on_loop
async def test_a_worker_that_is_cancelled_when_its_turn_has_come_passes_it_on() -> None:
    made = queue()
    first, second = asyncio.ensure_future(made.get()), asyncio.ensure_future(made.get())
    await turns(3)
    made.add("a")
    first.cancel()
    assert await second == "a"
    made.close()


@on_loop
async def test_a_closed_queue_takes_nothing_and_hands_out_what_it_has() -> None:
    made = queue()
    made.add("a")
    made.close()
    made.add("b")
    made.add_after("c", 1)
    assert await made.get() == "a"
    made.done("a")
    with pytest.raises(QueueClosed):
        await made.get()


def test_metrics_have_upstreams_names() -> None:
    clock, registry = FakeClock(), CollectorRegistry()
    made: WorkQueue[str] = WorkQueue(clock, name="resource_claim", registry=registry)
    other: WorkQueue[str] = WorkQueue(clock, name="other", registry=registry)
    for key in "aab":
        made.add(key)
    clock.advance(2)
    assert made.take() == "a"
    clock.advance(3)
    made.retry("z")

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, {"name": "resource_claim", **labels})

    assert value("workqueue_depth") == 1
    assert value("workqueue_adds_total") == 2
    assert value("workqueue_retries_total") == 1
    assert value("workqueue_queue_duration_seconds_sum") == 2
    assert value("workqueue_queue_duration_seconds_bucket", le="10.0") == 1
    assert value("workqueue_unfinished_work_seconds") == 3
    assert value("workqueue_longest_running_processor_seconds") == 3
    made.done("a")
    assert value("workqueue_work_duration_seconds_sum") == 3
    assert len(other) == 0
    assert b'workqueue_depth{name="other"} 0.0' in generate_latest(registry)


class Model:
    """A naive queue: sets, and a list of times."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.working: set[str] = set()
        self.again: list[str] = []
        self.due: dict[str, float] = {}

    def add(self, key: str) -> None:
        if key in self.working:
            if key not in self.again:
                self.again.append(key)
        elif key not in self.order:
            self.order.append(key)

    def after(self, key: str, due: float) -> None:
        """Of keys that are due at one instant, first come is who was first told of that instant."""
        if due < self.due.get(key, math.inf):
            self.due.pop(key, None)
            self.due[key] = due

    def tick(self, now: float) -> None:
        for key, due in sorted(self.due.items(), key=lambda item: item[1]):
            if due <= now:
                del self.due[key]
                self.add(key)

    def done(self, key: str) -> None:
        self.working.discard(key)
        if key in self.again:
            self.again.remove(key)
            self.order.append(key)


KEYS = st.sampled_from("abcd")
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), KEYS),
        st.tuples(st.just("take"), st.just("")),
        st.tuples(st.just("done"), KEYS),
        st.tuples(st.just("after"), KEYS, st.sampled_from([0.1, 1.01, 2.003, 7.0007])),
        st.tuples(st.just("advance"), st.sampled_from([0.05, 0.5, 3.3])),
    ),
    max_size=60,
)


@settings(max_examples=300, deadline=None)
@given(ACTIONS)
@example([("after", "d", 1.01), ("after", "a", 0.1), ("after", "d", 0.1), ("advance", 0.5)])
def test_the_queue_agrees_with_a_naive_model(actions: list[tuple[Any, ...]]) -> None:
    clock, model = FakeClock(), Model()
    made = queue(clock)
    for action, *rest in actions:
        match action, rest:
            case "add", [key]:
                made.add(key)
                model.add(key)
            case "take", _:
                model.tick(clock.monotonic())
                expected = model.order.pop(0) if model.order else None
                if expected is not None:
                    model.working.add(expected)
                assert made.take() == expected
            case "done", [key] if key in model.working:
                made.done(key)
                model.done(key)
            case "after", [key, seconds]:
                made.add_after(key, float(seconds))
                due = clock.monotonic() + float(seconds)
                model.after(key, due)
            case "advance", [seconds]:
                clock.advance(float(seconds))
                model.tick(clock.monotonic())
                assert made.ready() == model.order
        assert made.working == len(model.working)
        assert made.delayed == len(model.due)
    assert made.ready() == model.order
