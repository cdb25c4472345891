"""The agent's process is killed while it replaces its checkpoint, and the next one goes on."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import pytest

from drakit.client import PODS
from drakit.nodeagent.claims.checkpoint import FILE, decode
from tests.e2e.nodebench import Bench, allocate, running
from tests.e2e.nodemachine import NODE, gone, node_cluster, pod_with
from tests.e2e.processes import ROOT
from tests.e2e.reached import PATIENCE, reached


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with node_cluster(agent=False) as machine, ExitStack() as stack:
        made = Bench(machine, stack)
        with made.driver():
            asyncio.run(made.registered())
            yield made


def die_at_each(bench: Bench, steps: Sequence[str]) -> None:
    """One agent after the other, each killed at its step."""
    argv = (sys.executable, "-m", "tests.e2e.mortalagent", str(bench.root), "node", "--port", "0")
    for step in steps:
        (bench.root / "die-at").write_text(step)
        agent = subprocess.Popen(
            [*argv, *bench.machine.agent()], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT
        )
        try:
            assert agent.wait(PATIENCE) == -signal.SIGKILL, step
        finally:
            agent.kill()
            agent.wait()
        assert not (bench.root / "die-at").exists(), step


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
