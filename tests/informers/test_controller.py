"""Reconcile loops: retries, giving up, and stopping in the middle."""

from __future__ import annotations

import asyncio
import logging

import pytest

from drakit.base.clock import FakeClock
from drakit.base.errors import Conflict, Forbidden, NotFound
from drakit.informers import Controller, Result
from tests.client.servers import on_loop, turns


@on_loop
async def test_what_may_succeed_later_is_tried_again_later_each_time() -> None:
    clock = FakeClock()
    times: list[float] = []

    async def reconcile(key: str) -> None:
        times.append(clock.monotonic())
        if len(times) < 5:
            raise Conflict("moved")

    controller = Controller("test", reconcile, clock=clock)
    running = asyncio.ensure_future(controller.run())
    controller.queue.add("a")
    await clock.run_for(10)
    assert times == pytest.approx([0, 0.005, 0.015, 0.035, 0.075])
    assert controller.queue.failures("a") == 0  # it went well at last
    await controller.stop()
    await running


@on_loop
async def test_what_never_will_is_dropped_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    seen: list[str] = []

    async def reconcile(key: str) -> None:
        seen.append(key)
        raise NotFound("there is no class")

    controller = Controller("test", reconcile, clock=clock)
    running = asyncio.ensure_future(controller.run())
    controller.queue.add("a")
    await clock.run_for(5000)
    assert seen == ["a"]
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.ERROR, "test: a: giving up: there is no class")
    ]
    await controller.stop()
    await running


@on_loop
async def test_what_is_forbidden_is_tried_again_until_somebody_allows_it(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    rights: set[str] = set()
    done: list[str] = []

    async def reconcile(key: str) -> None:
        if "write" not in rights:
            raise Forbidden("you may not")
        done.append(key)

    controller = Controller("test", reconcile, clock=clock)
    running = asyncio.ensure_future(controller.run())
    controller.queue.add("a")
    await clock.run_for(60)
    assert done == []
    assert {record.getMessage() for record in caplog.records} == {"test: a: trying again: you may not"}
    rights.add("write")
    await clock.run_for(120)
    assert done == ["a"]
    await controller.stop()
    await running


@on_loop
async def test_a_bug_is_logged_and_does_not_stop_the_workers(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    seen: list[str] = []

    async def reconcile(key: str) -> None:
        seen.append(key)
        if key == "bad":
            raise KeyError("a bug")

    controller = Controller("test", reconcile, clock=clock)
    running = asyncio.ensure_future(controller.run())
    controller.queue.add("bad")
    controller.queue.add("good")
    await clock.run_for(0.011)
    assert seen[:2] == ["bad", "good"]
    assert seen.count("bad") == 2
    assert "KeyError" in caplog.text
    await controller.stop()
    await running


@on_loop
async def test_a_key_may_ask_to_be_looked_at_again() -> None:
    clock = FakeClock()
    times: list[float] = []

    async def reconcile(key: str) -> Result:
        times.append(clock.monotonic())
        return Result.after(30) if len(times) < 3 else Result.done()

    controller = Controller("test", reconcile, clock=clock)
    running = asyncio.ensure_future(controller.run())
    controller.queue.add("a")
    await clock.run_for(200)
    assert times == [0, 30, 60]
    await controller.stop()
    await running


@on_loop
async def test_workers_share_the_keys_and_never_one_key_at_a_time() -> None:
    clock = FakeClock()
    under_way: set[str] = set()
    most = 0

    async def reconcile(key: str) -> None:
        nonlocal most
        assert key not in under_way
        under_way.add(key)
        most = max(most, len(under_way))
        await clock.sleep(1)
        under_way.discard(key)

    controller = Controller("test", reconcile, clock=clock, workers=3)
    running = asyncio.ensure_future(controller.run())
    for _ in range(3):
        for key in "abcde":
            controller.queue.add(key)
        await clock.run_for(0.5)
    await clock.run_for(20)
    assert most == 3
    assert not under_way
    await controller.stop()
    await running


@on_loop
async def test_stopping_lets_what_is_under_way_finish_and_starts_nothing() -> None:
    clock = FakeClock()
    finished: list[str] = []

    async def reconcile(key: str) -> None:
        await clock.sleep(2)
        finished.append(key)

    controller = Controller("test", reconcile, clock=clock)
    running = asyncio.ensure_future(controller.run())
    controller.queue.add("a")
    controller.queue.add("b")
    await turns()
    stopping = asyncio.ensure_future(controller.stop())
    await clock.run_for(5)
    await stopping
    await running
    assert finished == ["a"]


@on_loop
async def test_stopping_does_not_wait_for_ever() -> None:
    clock = FakeClock()

    async def reconcile(key: str) -> None:
        await clock.sleep(10_000)

    controller = Controller("test", reconcile, clock=clock)
    running = asyncio.ensure_future(controller.run())
    controller.queue.add("a")
    await turns()
    stopping = asyncio.ensure_future(controller.stop(grace=10))
    await clock.run_for(9)
    assert not stopping.done()
    await clock.run_for(1)
    await stopping
    await running


@on_loop
async def test_cancelling_stops_in_the_middle() -> None:
    clock = FakeClock()
    reached: list[str] = []

    async def reconcile(key: str) -> None:
        reached.append("begun")
        await clock.sleep(1)
        reached.append("written")

    controller = Controller("test", reconcile, clock=clock)
    running = asyncio.ensure_future(controller.run())
    controller.queue.add("a")
    await turns()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await clock.run_for(5)
    assert reached == ["begun"]


@on_loop
async def test_cancelling_leaves_no_alarm_for_keys_that_wait_for_their_time() -> None:
    clock = FakeClock()
    before = asyncio.all_tasks()

    async def reconcile(key: str) -> Result:
        return Result(again_after=60)

    controller = Controller("test", reconcile, clock=clock)
    running = asyncio.ensure_future(controller.run())
    controller.queue.add("a")
    await turns()
    assert controller.queue.delayed == 1
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert asyncio.all_tasks() == before


@on_loop
async def test_thousands_of_keys_that_need_nothing_leave_others_their_turns() -> None:
    seen: list[int] = []

    async def reconcile(key: int) -> None:
        seen.append(key)

    controller = Controller("test", reconcile, clock=FakeClock())
    for key in range(1000):
        controller.queue.add(key)
    running = asyncio.ensure_future(controller.run())
    steps: list[int] = []
    while len(seen) < 1000:
        steps.append(len(seen))
        await asyncio.sleep(0)
    assert max(after - before for before, after in zip(steps, [*steps[1:], 1000], strict=True)) <= 256
    assert seen == list(range(1000))
    await controller.stop()
    await running
