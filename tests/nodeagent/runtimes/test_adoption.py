"""Containers outlive their agent: the next one finds them by pid and start time, and how they ended meanwhile."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from drakit.nodeagent.runtimes.contract import ContainerState, SandboxState
from drakit.nodeagent.runtimes.shim.kernel import start_time
from drakit.nodeagent.runtimes.supervised import records
from drakit.nodeagent.runtimes.supervised.records import ExitFile, ProcessPart, RunningFile
from tests.builders.powercut import power_cut
from tests.nodeagent.runtimes.scene import create, end, find, on_loop, output, process_runtime, remove_all, shell, start

ROOT = Path(__file__).parents[3]


def killed_agent(base: Path, *scripts: str) -> list[str]:
    """The ids of the containers that it left."""
    command = [sys.executable, "-m", "tests.nodeagent.runtimes.doomed_agent", str(base), *scripts]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as agent:
        assert agent.stdout is not None
        ids = agent.stdout.readline().split()
        agent.kill()
    return ids


def running_file(base: Path, container: str) -> Path:
    return base / "runtime" / "containers" / container / "running.json"


def running(base: Path, container: str) -> RunningFile:
    found = records.read(running_file(base, container), RunningFile)
    assert found is not None
    return found


@on_loop
async def test_containers_run_on_when_the_agent_is_killed_and_are_found_again(tmp_path: Path) -> None:
    ids = killed_agent(tmp_path, "true", "exit 7", "sleep 1000")
    async with process_runtime(tmp_path) as runtime:
        ended = await end(runtime, ids[1])
        sleeper = await find(runtime, ids[2])
        assert (ended.exit_code, ended.reason) == (7, "Error")
        assert (sleeper.state, len(await runtime.sandboxes())) == (ContainerState.RUNNING, 3)
        result = await runtime.exec_sync(ids[2], ["echo", "still here"])
        assert result.stdout == b"still here\n"
        await runtime.stop_container(ids[2], grace=5)
        assert (await find(runtime, ids[2])).exit_code == 143
        await remove_all(runtime)


@on_loop
async def test_the_log_goes_on_while_no_agent_is_there(tmp_path: Path) -> None:
    go = tmp_path / "go"
    (container,) = killed_agent(tmp_path, f"echo before; while [ ! -e {go} ]; do sleep 0.02; done; echo after; exit 4")
    go.touch()
    async with process_runtime(tmp_path) as runtime:
        info = await end(runtime, container)
        assert (output(info), info.exit_code) == ("before\nafter\n", 4)
        await remove_all(runtime)


@pytest.mark.parametrize("attempt", range(3))
@on_loop
async def test_an_agent_killed_at_the_start_of_a_container_leaves_a_whole_one_or_none(
    tmp_path: Path, attempt: int
) -> None:
    base = tmp_path / "starting"
    base.mkdir()
    (container,) = killed_agent(base, "sleep 1000")
    async with process_runtime(base) as runtime:
        state = (await find(runtime, container)).state
        assert state in (ContainerState.CREATED, ContainerState.RUNNING, ContainerState.EXITED)
        if state is ContainerState.CREATED:
            await runtime.start_container(container)
        await runtime.stop_container(container, grace=5)
        assert (await find(runtime, container)).state is ContainerState.EXITED
        await remove_all(runtime)


@on_loop
async def test_a_container_whose_agent_was_killed_before_its_shim_ran_was_never_started(tmp_path: Path) -> None:
    async with process_runtime(tmp_path) as runtime:
        container = await create(runtime, tmp_path, shell("echo once"))
    (running_file(tmp_path, container).parent / "lock").touch()  # the first thing that a start leaves
    async with process_runtime(tmp_path) as runtime:
        assert (await find(runtime, container)).state is ContainerState.CREATED
        await runtime.start_container(container)
        assert output(await end(runtime, container)) == "once\n"
        await remove_all(runtime)


@on_loop
async def test_a_container_whose_program_may_have_run_is_not_run_again(tmp_path: Path) -> None:
    async with process_runtime(tmp_path) as runtime:
        container = await start(runtime, tmp_path, shell("exit 0"))
        await end(runtime, container)
    for name in ("running.json", "exit.json"):  # as if its shim had been killed right before it wrote them
        running_file(tmp_path, container).with_name(name).unlink()
    async with process_runtime(tmp_path) as runtime:
        info = await find(runtime, container)
        assert (info.state, info.reason) == (ContainerState.EXITED, "ContainerStatusUnknown")
        await remove_all(runtime)


@on_loop
async def test_a_container_that_never_ran_is_removed_without_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else an agent that is killed meanwhile would leave a run that has failed."""
    async with process_runtime(tmp_path) as runtime:
        container = await create(runtime, tmp_path, shell("true"))
        seen: list[bool] = []

        async def die(_: object) -> None:
            seen.append(running_file(tmp_path, container).with_name("exit.json").exists())
            raise ConnectionError

        monkeypatch.setattr(runtime, "_clean_up", die)
        with pytest.raises(ConnectionError):
            await runtime.remove_container(container)
    assert seen == [False]
    async with process_runtime(tmp_path) as runtime:
        assert (await find(runtime, container)).state is ContainerState.CREATED
        await remove_all(runtime)


@on_loop
async def test_a_container_whose_shim_was_killed_is_gone_and_said_to_be_unknown(tmp_path: Path) -> None:
    async with process_runtime(tmp_path) as runtime:
        container = await start(runtime, tmp_path, shell("sleep 1000"))
        names = running(tmp_path, container)
        os.kill(names.shim.pid, signal.SIGKILL)
        info = await end(runtime, container)
        assert (info.exit_code, info.reason) == (137, "ContainerStatusUnknown")
        async with asyncio.timeout(120):
            while Path(f"/proc/{names.pid.pid}/exe").exists():
                await asyncio.sleep(0.01)
        await remove_all(runtime)


@on_loop
async def test_a_container_of_another_user_dies_with_its_shim_too(tmp_path: Path) -> None:
    user = 65534 if os.geteuid() == 0 else os.geteuid()
    for parent in (tmp_path, *list(tmp_path.parents)[:3]):
        parent.chmod(0o755)
    async with process_runtime(tmp_path) as runtime:
        config = shell("exec sleep 1000", run_as_user=user, working_dir="/")
        container = await start(runtime, tmp_path, config)
    names = running(tmp_path, container)
    os.kill(names.shim.pid, signal.SIGKILL)  # no agent is there that would end what is left
    async with asyncio.timeout(120):
        while start_time(names.pid.pid) == names.pid.start:
            await asyncio.sleep(0.01)


@on_loop
async def test_a_pid_that_belongs_to_somebody_else_by_now_is_left_alone(tmp_path: Path) -> None:
    async with process_runtime(tmp_path) as runtime:
        container = await start(runtime, tmp_path, shell("exit 0"))
        await end(runtime, container)
    with subprocess.Popen(["sleep", "1000"]) as stranger:
        names = running(tmp_path, container)
        other = ProcessPart(pid=stranger.pid, start="1")
        records.write(running_file(tmp_path, container), msgspec.structs.replace(names, shim=other, pid=other))
        running_file(tmp_path, container).with_name("exit.json").unlink()
        async with process_runtime(tmp_path) as runtime:
            info = await end(runtime, container)
            await remove_all(runtime)
        assert info.reason == "ContainerStatusUnknown"
        assert stranger.poll() is None
        stranger.kill()


@on_loop
async def test_after_a_reboot_nothing_is_taken_for_running(tmp_path: Path) -> None:
    async with process_runtime(tmp_path) as runtime:
        container = await start(runtime, tmp_path, shell("sleep 1000"))
    shim = running(tmp_path, container).shim.pid
    async with process_runtime(tmp_path, boot=lambda: "the next boot") as runtime:
        info = await end(runtime, container)
        (sandbox,) = await runtime.sandboxes()
        assert (info.reason, sandbox.state) == ("ContainerStatusUnknown", SandboxState.NOT_READY)
        again = await start(runtime, tmp_path, shell("echo again", log_path="main/1.log"))
        assert output(await end(runtime, again)) == "again\n"
        power_cut(shim)
        await remove_all(runtime)


@on_loop
async def test_a_half_made_container_is_removed(tmp_path: Path) -> None:
    half = tmp_path / "runtime" / "containers" / "half"
    half.mkdir(parents=True)
    (half / "launch.json").write_text("{}")
    async with process_runtime(tmp_path) as runtime:
        assert await runtime.containers() == []
    assert not half.exists()


@on_loop
async def test_a_damaged_record_costs_only_its_own_container(tmp_path: Path) -> None:
    async with process_runtime(tmp_path) as runtime:
        good = await start(runtime, tmp_path, shell("exit 0"))
        await end(runtime, good)
        bad = await start(runtime, tmp_path, shell("exit 0"))
        await end(runtime, bad)
    (tmp_path / "runtime" / "containers" / bad / "container.json").write_text("{")
    async with process_runtime(tmp_path) as runtime:
        assert [container.id for container in await runtime.containers()] == [good]
        assert records.read(running_file(tmp_path, good).with_name("exit.json"), ExitFile) is not None
        await remove_all(runtime)
