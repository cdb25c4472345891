"""The simulated runtime: states on an injected clock, behaviour by annotations."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

import pytest

from drakit.base.clock import FakeClock
from drakit.nodeagent.runtimes.contract import (
    ContainerConfig,
    ContainerInfo,
    ContainerRole,
    ContainerState,
    PodIdentity,
    RuntimeRefusal,
    SandboxConfig,
    SandboxNotReady,
    SandboxState,
)
from drakit.nodeagent.runtimes.simulated import SimulatedRuntime

T = TypeVar("T")
POD = PodIdentity(uid="uid-1", namespace="default", name="web")


def play(scene: Callable[[SimulatedRuntime, FakeClock], Awaitable[T]]) -> T:
    async def whole() -> T:
        clock = FakeClock()
        ids = itertools.count(1)
        async with SimulatedRuntime(clock=clock, new_id=lambda: f"id-{next(ids)}") as runtime:
            return await scene(runtime, clock)

    return asyncio.run(whole())


async def start(
    runtime: SimulatedRuntime,
    *,
    annotations: Mapping[str, str] | None = None,
    name: str = "main",
    role: ContainerRole = ContainerRole.MAIN,
) -> str:
    sandbox = await runtime.run_sandbox(SandboxConfig(pod=POD, annotations=annotations or {}))
    container = await runtime.create_container(sandbox, ContainerConfig(pod=POD, name=name, role=role))
    await runtime.start_container(container)
    return container


async def only(runtime: SimulatedRuntime) -> ContainerInfo:
    (container,) = await runtime.containers()
    return container


def test_a_container_without_annotations_runs_until_it_is_stopped() -> None:
    async def scene(runtime: SimulatedRuntime, clock: FakeClock) -> tuple[ContainerInfo, ContainerInfo]:
        container = await start(runtime)
        await clock.run_for(1_000_000)
        before = await only(runtime)
        await runtime.stop_container(container, grace=30)
        return before, await only(runtime)

    before, after = play(scene)
    assert before.state is ContainerState.RUNNING
    assert (after.state, after.exit_code, after.reason) == (ContainerState.EXITED, 143, "Error")


def test_a_container_ends_after_its_time_and_its_pod_is_told() -> None:
    async def scene(runtime: SimulatedRuntime, clock: FakeClock) -> tuple[ContainerInfo, ContainerInfo, str]:
        await start(runtime, annotations={"drakit.dev/runs-for": "1m30s", "drakit.dev/exits-with": "main=3"})
        await clock.run_for(89)
        before = await only(runtime)
        await clock.run_for(1)
        return before, await only(runtime), await anext(runtime.changes())

    before, after, uid = play(scene)
    assert before.state is ContainerState.RUNNING
    assert (after.exit_code, after.reason, uid) == (3, "Error", POD.uid)
    assert after.started is not None
    assert after.finished is not None
    assert (after.finished - after.started).total_seconds() == 90


def test_an_annotation_may_name_the_container() -> None:
    async def scene(runtime: SimulatedRuntime, clock: FakeClock) -> ContainerInfo:
        await start(runtime, name="side", annotations={"drakit.dev/runs-for": "main=1s,side=1h"})
        await clock.run_for(60)
        return await only(runtime)

    assert play(scene).state is ContainerState.RUNNING


def test_an_init_container_ends_well_at_once() -> None:
    async def scene(runtime: SimulatedRuntime, clock: FakeClock) -> ContainerInfo:
        await start(runtime, role=ContainerRole.INIT)
        await clock.run_for(0)
        return await only(runtime)

    ended = play(scene)
    assert (ended.state, ended.exit_code, ended.reason) == (ContainerState.EXITED, 0, "Completed")


@pytest.mark.parametrize(("grace", "code"), [(30, 143), (2, 137)])
def test_a_container_that_stops_slowly_is_killed_after_the_grace(grace: float, code: int) -> None:
    async def scene(runtime: SimulatedRuntime, clock: FakeClock) -> tuple[float, int]:
        container = await start(runtime, annotations={"drakit.dev/stops-after": "10s"})
        stop = asyncio.create_task(runtime.stop_container(container, grace=grace))
        await clock.run_for(min(grace, 10))
        assert stop.done()
        return clock.monotonic(), (await only(runtime)).exit_code

    assert play(scene) == (min(grace, 10), code)


def test_an_unreadable_annotation_is_refused_by_its_name() -> None:
    async def scene(runtime: SimulatedRuntime, clock: FakeClock) -> None:
        await start(runtime, annotations={"drakit.dev/runs-for": "soon"})

    with pytest.raises(RuntimeRefusal, match=r'annotation drakit\.dev/runs-for: "soon" is not a time') as refusal:
        play(scene)
    assert refusal.value.reason == "CreateContainerConfigError"


def test_a_stopped_sandbox_ends_its_containers_and_takes_no_more() -> None:
    async def scene(runtime: SimulatedRuntime, clock: FakeClock) -> tuple[int, SandboxState]:
        await start(runtime, annotations={"drakit.dev/runs-for": "1h"})
        (sandbox,) = await runtime.sandboxes()
        await runtime.stop_sandbox(sandbox.id)
        await runtime.stop_sandbox(sandbox.id)
        with pytest.raises(SandboxNotReady):
            await runtime.create_container(sandbox.id, ContainerConfig(pod=POD, name="again"))
        code, state = (await only(runtime)).exit_code, (await runtime.sandboxes())[0].state
        await runtime.remove_sandbox(sandbox.id)
        assert (await runtime.sandboxes(), await runtime.containers()) == ([], [])
        return code, state

    assert play(scene) == (137, SandboxState.NOT_READY)


def test_the_cdi_ids_of_a_container_are_kept_in_order() -> None:
    async def scene(runtime: SimulatedRuntime, clock: FakeClock) -> tuple[str, ...]:
        sandbox = await runtime.run_sandbox(SandboxConfig(pod=POD))
        config = ContainerConfig(pod=POD, name="main", cdi_devices=["v/c=b", "v/c=a", "v/c=b"])
        return runtime.cdi_devices(await runtime.create_container(sandbox, config))

    assert play(scene) == ("v/c=b", "v/c=a", "v/c=b")


def test_pods_get_addresses_of_the_range_and_host_network_pods_none() -> None:
    async def scene(runtime: SimulatedRuntime, clock: FakeClock) -> list[str]:
        for number in range(3):
            pod = PodIdentity(uid=str(number), namespace="default", name=str(number))
            await runtime.run_sandbox(SandboxConfig(pod=pod, host_network=number == 1))
        return [sandbox.ip for sandbox in await runtime.sandboxes()]

    assert play(scene) == ["10.244.0.1", "", "10.244.0.2"]


def test_exec_says_that_nothing_runs() -> None:
    async def scene(runtime: SimulatedRuntime, clock: FakeClock) -> None:
        await runtime.exec(await start(runtime), ["sh"])

    with pytest.raises(RuntimeRefusal, match="simulated containers run no process"):
        play(scene)
