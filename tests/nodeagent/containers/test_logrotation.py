"""Logs of containers stay within bounds."""

from __future__ import annotations

import asyncio
import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from drakit.base.clock import FakeClock, RealClock
from drakit.nodeagent.containers.logrotation import LogBounds, LogRotation, rotated
from drakit.nodeagent.runtimes.cdi import CdiRegistry
from drakit.nodeagent.runtimes.cgroups import Cgroups, cgroup_name
from drakit.nodeagent.runtimes.contract import (
    ContainerConfig,
    ContainerInfo,
    PodIdentity,
    RuntimeFailure,
    SandboxConfig,
)
from drakit.nodeagent.runtimes.process import ProcessRuntime
from drakit.nodeagent.runtimes.simulated import SimulatedRuntime

POD = PodIdentity("uid", "default", "pod")


class Writing(SimulatedRuntime):
    """One container with a log file, which it opens anew when told."""

    def __init__(self, path: Path, clock: FakeClock) -> None:
        super().__init__(clock=clock)
        self.path = path
        self.fails = False

    async def containers(self) -> list[ContainerInfo]:
        return [replace(each, log_path=str(self.path)) for each in await super().containers()]

    async def reopen_log(self, container_id: str) -> None:
        await super().reopen_log(container_id)
        if self.fails:
            raise RuntimeFailure("not now")
        self.path.write_bytes(b"")


async def begin(runtime: SimulatedRuntime) -> str:
    sandbox = await runtime.run_sandbox(SandboxConfig(POD))
    container = await runtime.create_container(sandbox, ContainerConfig(POD, "main"))
    await runtime.start_container(container)
    return container


def test_a_log_that_is_too_large_is_renamed_older_ones_are_packed_and_the_oldest_go(tmp_path: Path) -> None:
    async def rotate() -> None:
        clock, path = FakeClock(), tmp_path / "0.log"
        runtime = Writing(path, clock)
        await begin(runtime)
        rotation = LogRotation(runtime, clock, LogBounds(size=10, files=3))
        for number in range(5):
            path.write_text(f"{number} is long enough")
            await rotation.look()
            clock.advance(10.0)
        assert path.read_bytes() == b""
        packed, newest = rotated(path)
        assert gzip.decompress(packed.read_bytes()) == b"3 is long enough"
        assert newest.read_text() == "4 is long enough"

    asyncio.run(rotate())


def test_a_log_within_its_bounds_and_one_of_an_ended_container_stay(tmp_path: Path) -> None:
    async def rotate() -> None:
        clock, path = FakeClock(), tmp_path / "0.log"
        runtime = Writing(path, clock)
        container = await begin(runtime)
        rotation = LogRotation(runtime, clock, LogBounds(size=10))
        path.write_text("ten bytes!")
        await rotation.look()
        path.write_text("more than ten bytes")
        await runtime.stop_container(container, grace=0)
        await rotation.look()
        assert rotated(path) == []

    asyncio.run(rotate())


def test_a_log_that_the_runtime_does_not_open_anew_keeps_its_name(tmp_path: Path) -> None:
    async def rotate() -> None:
        clock, path = FakeClock(), tmp_path / "0.log"
        runtime = Writing(path, clock)
        await begin(runtime)
        runtime.fails = True
        path.write_text("more than ten bytes")
        with pytest.raises(RuntimeFailure):
            await LogRotation(runtime, clock, LogBounds(size=10)).look()
        assert path.read_text() == "more than ten bytes"
        assert rotated(path) == []

    asyncio.run(rotate())


def test_a_real_container_goes_on_in_a_new_file_and_no_line_is_lost(tmp_path: Path) -> None:
    async def rotate() -> None:
        script = "i=0; while [ $i -lt 400 ]; do echo line-$i; i=$((i+1)); sleep 0.002; done; sleep 1000"
        runtime = ProcessRuntime(
            tmp_path / "runtime",
            clock=RealClock(),
            cdi=CdiRegistry([tmp_path]),
            cgroups=Cgroups(cgroup_name("logrotation", tmp_path)),
        )
        async with runtime:
            sandbox = await runtime.run_sandbox(SandboxConfig(POD, log_directory=str(tmp_path)))
            config = ContainerConfig(POD, "main", command=["sh", "-c", script], log_path="main/0.log")
            container = await runtime.create_container(sandbox, config)
            await runtime.start_container(container)
            path = tmp_path / "main" / "0.log"
            rotation = LogRotation(runtime, RealClock(), LogBounds(size=2000, files=100))
            async with asyncio.timeout(60):
                while b"line-399" not in path.read_bytes():
                    await rotation.look()
                    await asyncio.sleep(0.02)
            await runtime.remove_sandbox(sandbox)
        assert rotated(path)
        kept = [gzip.decompress(e.read_bytes()) if e.suffix == ".gz" else e.read_bytes() for e in rotated(path)]
        lines = [line.rsplit(b" ", 1)[1] for line in b"".join([*kept, path.read_bytes()]).splitlines()]
        assert lines == [f"line-{number}".encode() for number in range(400)]

    asyncio.run(rotate())
