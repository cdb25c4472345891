"""The agent's process is killed at every step of prepare, start, stop and unprepare, and the next one goes on."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from drakit.client import PODS
from drakit.nodeagent.claims.checkpoint import FILE, decode
from tests.e2e.nodebench import BARE, Bench, allocate, running
from tests.e2e.nodemachine import NODE, gone, node_cluster, pod_with, there
from tests.e2e.processes import ROOT
from tests.e2e.reached import PATIENCE, reached

# Where one step ends the next one begins: each moment between two of them is there once.
UNTIL_IT_RUNS = (
    "before rename",  # of the checkpoint, which has the claim before a driver hears of it
    "after rename",
    "after prepare, before rename",
    "after prepare, after rename",
    "after run_sandbox",
    "after create_container",
    "after start_container",
)
UNTIL_IT_IS_GONE = (
    "before stop_container",
    "after stop_container",
    "after stop_sandbox",
    "after unprepare, before rename",
    "after unprepare, after rename",
    "before delete",
    "after delete",
)


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with node_cluster(agent=False) as machine, ExitStack() as stack:
        made = Bench(machine, stack)
        with made.driver():
            asyncio.run(made.registered())
            yield made


def die_at_each(bench: Bench, steps: Sequence[str]) -> None:
    """One agent after the other, each killed at its step; what it said is told if it is not."""
    argv = (sys.executable, "-m", "tests.e2e.mortalagent", str(bench.root), "node", "--port", "0")
    said = bench.root / "mortal.log"
    for step in steps:
        (bench.root / "die-at").write_text(step)
        with said.open("wb") as file:
            agent = subprocess.Popen([*argv, *bench.machine.agent()], stdout=file, stderr=file, cwd=ROOT)
        try:
            agent.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            pass  # told below
        finally:
            agent.kill()
            agent.wait()
        assert not (bench.root / "die-at").exists(), f"it did not come to {step}: {said.read_text()}"
        assert agent.returncode == -signal.SIGKILL, f"{step}: {said.read_text()}"


def test_an_agent_that_is_killed_at_every_step_starts_a_pod_once_and_lets_all_of_it_go(bench: Bench) -> None:
    async def begin() -> None:
        async with reached(bench.machine.server.kubeconfig) as client:
            await allocate(client, "mortal")
            pod = pod_with("mortal", "echo begun; exec sleep 1000", "bare", nodeName=NODE)
            pod["spec"]["resourceClaims"] = [{"name": "bare", "resourceClaimName": "mortal"}]
            await client.create(pod)

    async def runs() -> None:
        async with reached(bench.machine.server.kubeconfig) as client:
            (status,) = (await running(client, "mortal"))["containerStatuses"]
            assert status["restartCount"] == 0
            await there(lambda: logs(bench.root))
            assert [text.count("begun") for text in logs(bench.root)] == [1]
            assert {each[0] for each in bench.calls()} == {"prepare"}
            (record,) = decode((bench.root / FILE).read_bytes())
            assert [device.device for device in record.drivers[BARE] or ()] == ["dev-mortal"]
            await client.delete(PODS, "mortal", namespace="default")

    async def is_gone() -> None:
        async with reached(bench.machine.server.kubeconfig) as client:
            await gone(client, "mortal")
        await there(lambda: not list(bench.root.glob("runtime/containers/*")))
        assert bench.calls()[-1] == ["unprepare", ["mortal"]]
        calls = [each[0] for each in bench.calls()]
        assert calls == sorted(calls), "prepare, and then unprepare alone"
        assert decode((bench.root / FILE).read_bytes()) == []
        assert logs(bench.root) == []

    bench.kill_agent()
    asyncio.run(begin())
    die_at_each(bench, UNTIL_IT_RUNS)
    bench.start_agent()
    asyncio.run(runs())
    bench.kill_agent()
    die_at_each(bench, UNTIL_IT_IS_GONE)
    bench.start_agent()
    asyncio.run(is_gone())


def logs(root: Path) -> list[str]:
    """What each run of the pod's container has written."""
    return [each.read_text() for each in root.glob("logs/default_mortal_*/main/*.log") if each.stat().st_size]


def test_an_agent_that_is_killed_while_it_replaces_its_checkpoint_leaves_a_whole_one(bench: Bench) -> None:
    """The one of before the rename, and beside it what was to come."""

    async def begin() -> None:
        async with reached(bench.machine.server.kubeconfig) as client:
            await allocate(client, "torn")
            pod = pod_with("torn", "sleep 1000", "bare", nodeName=NODE)
            pod["spec"]["resourceClaims"] = [{"name": "bare", "resourceClaimName": "torn"}]
            await client.create(pod)

    async def end() -> None:
        async with reached(bench.machine.server.kubeconfig) as client:
            await running(client, "torn")
            assert not beside.exists()
            await client.delete(PODS, "torn", namespace="default")
            await gone(client, "torn")

    beside = bench.root / f".{FILE}.tmp"
    bench.kill_agent()
    asyncio.run(begin())
    before = (bench.root / FILE).read_bytes()
    die_at_each(bench, ["before rename"])
    assert (bench.root / FILE).read_bytes() == before
    assert [record.name for record in decode(beside.read_bytes())] == ["torn"]
    beside.write_bytes(beside.read_bytes()[:-7])  # as if the kill had come in the middle of the write
    bench.start_agent()
    asyncio.run(end())
    assert not list(bench.root.glob(f"{FILE}.damaged-*"))
