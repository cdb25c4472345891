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
from tests.e2e.nodebench import BARE, Bench, allocate, end, running
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


async def begin(bench: Bench, name: str, script: str = "exec sleep 1000") -> None:
    """A pod on the node, with a claim of its name."""
    async with reached(bench.machine.server.kubeconfig) as client:
        await allocate(client, name)
        pod = pod_with(name, script, "bare", nodeName=NODE)
        pod["spec"]["resourceClaims"] = [{"name": "bare", "resourceClaimName": name}]
        await client.create(pod)


def test_an_agent_that_is_killed_at_every_step_until_a_pod_runs_starts_it_once(bench: Bench) -> None:
    async def runs() -> None:
        async with reached(bench.machine.server.kubeconfig) as client:
            (status,) = (await running(client, "born"))["containerStatuses"]
            assert status["restartCount"] == 0
            await there(lambda: logs(bench.root, "born"))
            assert [text.count("begun") for text in logs(bench.root, "born")] == [1]
            assert len(list(bench.root.glob("runtime/containers/*"))) == 1
            assert {each[0] for each in bench.calls()} == {"prepare"}
            (record,) = decode((bench.root / FILE).read_bytes())
            assert [device.device for device in record.drivers[BARE] or ()] == ["dev-born"]
            await end(client, "born")

    bench.kill_agent()
    bench.forget()
    asyncio.run(begin(bench, "born", "echo begun; exec sleep 1000"))
    die_at_each(bench, UNTIL_IT_RUNS)
    bench.start_agent()
    asyncio.run(runs())


def test_an_agent_that_is_killed_at_every_step_of_a_pods_end_lets_all_of_it_go(bench: Bench) -> None:
    async def runs() -> None:
        await begin(bench, "mortal")
        async with reached(bench.machine.server.kubeconfig) as client:
            await running(client, "mortal")

    async def delete() -> None:
        async with reached(bench.machine.server.kubeconfig) as client:
            await client.delete(PODS, "mortal", namespace="default")

    async def is_gone() -> None:
        async with reached(bench.machine.server.kubeconfig) as client:
            await gone(client, "mortal")
        await there(lambda: not list(bench.root.glob("runtime/containers/*")))
        await there(lambda: not list(bench.root.glob("logs/*")))
        calls = [each[0] for each in bench.calls()]
        assert calls == ["prepare", *["unprepare"] * (len(calls) - 1)]
        assert bench.calls()[-1] == ["unprepare", ["mortal"]]
        assert decode((bench.root / FILE).read_bytes()) == []
        assert not list(bench.root.glob("pods/*"))

    bench.forget()
    asyncio.run(runs())
    bench.kill_agent()  # before the deletion: it would begin with the end
    asyncio.run(delete())
    die_at_each(bench, UNTIL_IT_IS_GONE)
    bench.start_agent()
    asyncio.run(is_gone())


def logs(root: Path, pod: str) -> list[str]:
    """What each run of the pod's container has written."""
    return [each.read_text() for each in root.glob(f"logs/default_{pod}_*/main/*.log") if each.stat().st_size]


def test_an_agent_that_is_killed_while_it_replaces_its_checkpoint_leaves_a_whole_one(bench: Bench) -> None:
    """The one of before the rename, and beside it what was to come."""

    async def goes_on() -> None:
        async with reached(bench.machine.server.kubeconfig) as client:
            await running(client, "torn")
            assert not beside.exists()
            await end(client, "torn")

    beside = bench.root / f".{FILE}.tmp"
    bench.kill_agent()
    asyncio.run(begin(bench, "torn"))
    before = (bench.root / FILE).read_bytes()
    die_at_each(bench, ["before rename"])
    assert (bench.root / FILE).read_bytes() == before
    assert [record.name for record in decode(beside.read_bytes())] == ["torn"]
    beside.write_bytes(beside.read_bytes()[:-7])  # as if the kill had come in the middle of the write
    bench.start_agent()
    asyncio.run(goes_on())
    assert not list(bench.root.glob(f"{FILE}.damaged-*"))
