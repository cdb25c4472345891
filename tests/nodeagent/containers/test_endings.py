"""Hooks, grace periods, restart backoff."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import aiohttp
import pytest

from drakit.base.clock import FakeClock
from drakit.nodeagent.containers.backoff import RestartBackoff, go_duration
from drakit.nodeagent.containers.failures import HookFailed
from drakit.nodeagent.containers.handlers import HandlerRunner, HandlerTarget
from drakit.nodeagent.containers.hooks import end_container, grace_period, run_post_start
from drakit.nodeagent.runtimes.contract import ExecResult, PodIdentity
from drakit.nodeagent.runtimes.simulated import SimulatedRuntime
from tests.nodeagent.containers.pods import container, stored_pod

EXEC = {"exec": {"command": ["hook"]}}


class Recording(SimulatedRuntime):
    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock=clock)
        self.code = 0
        self.seen: list[Any] = []

    async def exec_sync(self, container_id: str, command: Any, *, limit: float = 0) -> ExecResult:  # noqa: ARG002
        self.seen.append(("exec", *command))
        return ExecResult(self.code, b"", b"")

    async def stop_container(self, container_id: str, *, grace: float) -> None:  # noqa: ARG002
        self.seen.append(("stop", grace))


class Scene:
    def __init__(self, clock: FakeClock, runtime: Recording, runner: HandlerRunner) -> None:
        self.clock, self.runtime, self.runner = clock, runtime, runner
        self.events: list[tuple[str, str]] = []

    def target(self, **lifecycle: Any) -> HandlerTarget:
        return HandlerTarget("id", container(lifecycle=lifecycle), "127.0.0.1")

    async def end(self, *, grace: float, **lifecycle: Any) -> None:
        ending = asyncio.create_task(
            end_container(
                self.target(**lifecycle),
                grace=grace,
                runtime=self.runtime,
                runner=self.runner,
                clock=self.clock,
                on_event=lambda reason, message: self.events.append((reason, message)),
            )
        )
        await self.clock.run_for(1000)
        await ending


def play(scene: Callable[[Scene], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        clock = FakeClock()
        runtime = Recording(clock)
        async with aiohttp.ClientSession() as session:
            await scene(Scene(clock, runtime, HandlerRunner(runtime, session, clock=clock)))

    asyncio.run(whole())


def test_a_hook_runs_before_the_stop_and_its_time_counts() -> None:
    async def scene(it: Scene) -> None:
        await it.end(grace=30, preStop={"sleep": {"seconds": 12}})
        await it.end(grace=30, preStop=EXEC)
        await it.end(grace=30)
        assert it.runtime.seen == [("stop", 18), ("exec", "hook"), ("stop", 30), ("stop", 30)]
        assert it.events == []

    play(scene)


def test_two_seconds_are_left_in_any_case() -> None:
    async def scene(it: Scene) -> None:
        await it.end(grace=10, preStop={"sleep": {"seconds": 60}})
        await it.end(grace=0, preStop=EXEC)
        assert it.runtime.seen == [("stop", 2), ("stop", 2)]
        assert it.events == [("FailedPreStopHook", "PreStopHook didn't finish within the grace period of 10 s")]

    play(scene)


def test_a_failed_pre_stop_hook_keeps_nobody() -> None:
    async def scene(it: Scene) -> None:
        it.runtime.code = 3
        await it.end(grace=30, preStop=EXEC)
        assert it.events == [("FailedPreStopHook", "PreStopHook failed: command exited with 3")]
        assert it.runtime.seen[-1] == ("stop", 30)

    play(scene)


def test_a_failed_post_start_hook_is_told() -> None:
    async def scene(it: Scene) -> None:
        await run_post_start(it.target(), runner=it.runner)
        await run_post_start(it.target(postStart=EXEC), runner=it.runner)
        it.runtime.code = 1
        with pytest.raises(HookFailed, match="PostStartHook failed: command exited with 1"):
            await run_post_start(it.target(postStart=EXEC), runner=it.runner)
        with pytest.raises(HookFailed, match="must be exec, httpGet or sleep"):
            await run_post_start(it.target(postStart={"tcpSocket": {"port": 1}}), runner=it.runner)

    play(scene)


def test_whose_grace_period_counts() -> None:
    assert grace_period(stored_pod()) == 30
    assert grace_period(stored_pod(terminationGracePeriodSeconds=5)) == 5
    assert grace_period(stored_pod(terminationGracePeriodSeconds=5), probe_grace=9) == 9
    deleted = stored_pod(terminationGracePeriodSeconds=5, metadata={"deletionGracePeriodSeconds": 0})
    assert grace_period(deleted, probe_grace=9) == 0


def test_restarts_wait_twice_as_long_each_time_up_to_five_minutes() -> None:
    clock = FakeClock()
    backoff = RestartBackoff(clock=clock)
    waits = []
    for _ in range(8):
        finished = clock.now()
        waits.append(backoff.wait("u", "main", finished=finished))
        clock.advance(waits[-1])
        assert backoff.wait("u", "main", finished=finished) == 0
        backoff.started("u", "main", finished=finished)
        clock.advance(1)
    assert waits == [0, 10, 20, 40, 80, 160, 300, 300]
    message = "back-off 5m0s restarting failed container=main pod=web_shop(u)"
    assert backoff.message(PodIdentity("u", "shop", "web"), "main") == message


def test_a_long_run_starts_the_waits_over_and_time_since_the_end_counts() -> None:
    clock = FakeClock()
    backoff = RestartBackoff(clock=clock)
    backoff.started("u", "main", finished=clock.now())
    finished = clock.now()
    clock.advance(4)
    assert backoff.wait("u", "main", finished=finished) == 6
    clock.advance(597)
    assert backoff.wait("u", "main", finished=clock.now()) == 0
    backoff.started("u", "main", finished=clock.now())
    assert backoff.seconds("u", "main") == 10
    backoff.forget("u")
    assert backoff.seconds("u", "main") == 0


@pytest.mark.parametrize(("seconds", "text"), [(10, "10s"), (80, "1m20s"), (300, "5m0s"), (3725, "1h2m5s")])
def test_times_are_written_as_go_does(seconds: float, text: str) -> None:
    assert go_duration(seconds) == text
