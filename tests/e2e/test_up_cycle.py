"""`drakit up` from start to start: what is stopped, killed or taken away, and what is there again afterwards."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from drakit.client import PODS, Client
from drakit.nodeagent.runtimes.cgroups import cgroup_name
from drakit.nodeagent.runtimes.shim.kernel import start_time
from tests.builders.loop import on_loop
from tests.e2e.commands import run
from tests.e2e.processes import ROOT, Running, apiserver, command, following
from tests.e2e.reached import PATIENCE, reached, until

# $$$$ reaches the shell as $$: its own process.
STUBBORN = "trap '' TERM; echo $$$$; while :; do sleep 0.2; done"


def sleeper(name: str, policy: str, *, node: str = "", script: str = "echo $$$$; exec sleep 600") -> Any:
    container = {"name": "main", "image": "none", "command": ["sh", "-c", script]}
    spec = {"restartPolicy": policy, "containers": [container], **({"nodeName": node} if node else {})}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


async def pid_of(client: Client, name: str, *, but: int = 0) -> int:
    """What the container printed: its process. `but` is one that was there before."""
    await until(client, PODS, lambda pod: (pod.view.metadata.name, pod.view.status.phase) == (name, "Running"),
                namespace="default")  # fmt: skip
    async with asyncio.timeout(PATIENCE):
        while True:
            text = (await client.text(f"/api/v1/namespaces/default/pods/{name}/log")).strip()
            if text and int(text) != but:
                return int(text)
            await asyncio.sleep(0.05)


def begin(running: Running, *pods: Any) -> dict[str, int]:
    """The processes of the pods, once they run."""
    return asyncio.run(_begin(running, pods))


async def _begin(running: Running, pods: Sequence[Any]) -> dict[str, int]:
    async with reached(running.kubeconfig) as client:
        for each in pods:
            await client.create(each)
        return {each["metadata"]["name"]: await pid_of(client, each["metadata"]["name"]) for each in pods}


@on_loop
async def forget(kubeconfig: Path, name: str) -> None:
    """Delete the pod, and wait until its node has let it go."""
    async with reached(kubeconfig) as client:
        await client.delete(PODS, name, namespace="default", grace=1)
        async with asyncio.timeout(PATIENCE):
            while await client.list(PODS, namespace="default"):  # noqa: ASYNC110 - a look is short enough
                await asyncio.sleep(0.05)


async def status_of(client: Client, name: str) -> tuple[str, int]:
    """Phase, and how often the container was started again."""
    document = (await client.get(PODS, name, namespace="default")).document
    [status] = document["status"]["containerStatuses"]
    return document["status"]["phase"], status["restartCount"]


def test_an_interrupt_ends_every_container_and_the_next_start_does_what_restart_policies_say(tmp_path: Path) -> None:
    pods = [sleeper("always", "Always", script=STUBBORN), sleeper("failed", "OnFailure"), sleeper("never", "Never")]
    with apiserver("--data-dir", str(tmp_path), name="up") as first:
        before = begin(first, *pods)
        os.kill(first.pid, signal.SIGINT)
    assert [name for name, pid in before.items() if start_time(pid)] == []

    @on_loop
    async def look(running: Running) -> None:
        async with reached(running.kubeconfig) as client:
            for name in ("always", "failed"):
                await pid_of(client, name, but=before[name])
                assert await status_of(client, name) == ("Running", 1)
            await until(client, PODS, lambda pod: pod.view.status.phase == "Failed", namespace="default")
            assert await status_of(client, "never") == ("Failed", 0)

    with apiserver("--data-dir", str(tmp_path), name="up") as second:
        look(second)
    left = Path("/sys/fs/cgroup").rglob(f"drakit/{cgroup_name('node-1', tmp_path / 'nodes' / 'node-1')}")
    assert list(left) == []


def test_after_a_kill_containers_are_adopted_restarted_or_ended(tmp_path: Path) -> None:
    """One goes on untouched, one has died meanwhile, and one is on a node that does not come back."""
    pods = [
        sleeper(name, "Always", node=node) for name, node in (("on", "node-1"), ("died", "node-1"), ("off", "node-2"))
    ]
    with apiserver("--data-dir", str(tmp_path), "--nodes", "2", name="up", killed=True) as first:
        before = begin(first, *pods)
        os.kill(first.pid, signal.SIGKILL)
    os.kill(before["died"], signal.SIGKILL)
    assert start_time(before["on"])
    assert start_time(before["off"])

    @on_loop
    async def look(running: Running) -> None:
        async with reached(running.kubeconfig) as client:
            assert await pid_of(client, "on") == before["on"]
            assert await status_of(client, "on") == ("Running", 0)
            await pid_of(client, "died", but=before["died"])
            assert await status_of(client, "died") == ("Running", 1)

    with apiserver("--data-dir", str(tmp_path), "--nodes", "1", name="up") as second:
        assert not start_time(before["off"])
        look(second)
    assert not start_time(before["on"])


def test_what_a_killed_ephemeral_cluster_left_is_ended_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with apiserver("--ephemeral", name="up", killed=True) as first:
        before = begin(first, sleeper("left", "Always"))
        os.kill(first.pid, signal.SIGKILL)
    assert list(tmp_path.glob("drakit-*/owner"))
    with apiserver("--ephemeral", name="up") as second:
        assert not start_time(before["left"])
        assert [each.parent for each in tmp_path.glob("drakit-*/owner")] == [second.kubeconfig.parent]
    assert list(tmp_path.glob("drakit-*/owner")) == []


def test_the_scheduler_takes_its_configuration(tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{schedulerName: mine}]\n"
    )
    mine = sleeper("mine", "Never")
    mine["spec"]["schedulerName"] = "mine"
    with apiserver("--ephemeral", "--config", str(config), name="up") as running:
        begin(running, mine)


def test_without_nodes_the_command_that_is_told_joins_one(tmp_path: Path) -> None:
    with subprocess.Popen(
        command("--port", "0", "--nodes", "0", "--data-dir", str(tmp_path / "data"), name="up"),
        stdout=subprocess.PIPE, text=True, cwd=ROOT,
    ) as process:  # fmt: skip
        lines = iter(process.stdout or ())
        try:
            kubeconfig = Path(next(lines).rpartition("kubeconfig ")[2].strip())
            told = next(lines).removeprefix("next: drakit node ").split()
            told[told.index("/tmp/node-1")] = str(tmp_path / "node")
            with following("node", *told):
                begin(Running("", kubeconfig, process.pid), sleeper("joined", "Never"))
                forget(kubeconfig, "joined")
        finally:
            process.terminate()
            process.wait(20)


def test_a_terminal_has_a_line_that_tells_how_the_cluster_is(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    started = command("--ephemeral", "--port", "0", name="up")
    with subprocess.Popen(started, stdout=theirs, stderr=theirs, cwd=ROOT, env=environment) as process:
        os.close(theirs)
        seen = b""
        with suppress(OSError):  # the other side is closed in the end
            while data := os.read(ours, 4096):
                seen += data
                if b"1 of 1 nodes ready" in seen and b"stopping" not in seen:
                    process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    os.close(ours)
    assert b"pods: none \xc2\xb7 0 devices in use \xc2\xb7 Ctrl-C stops" in seen


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "No such file"),
        ("nodes: [", "cluster.yaml: while parsing"),
        ("nodes: [{colour: red}]", "colour"),
        ("nodes: [{profiles: [h200]}]", "there is no profile 'h200'"),
        ("nodes: [{name: same, count: 2}]", "two nodes are called 'same'"),
        ("nodes: [{name: '{zone}'}]", "there is no value 'zone'"),
        ("nodes: [{capacity: {cpu: many}}]", "capacity cpu"),
        ("nodes: [{count: 100000}]", "20,000 nodes"),
        ("nodes: [{slices: [{driver: 5}]}]", "driver"),
    ],
)
def test_an_inventory_that_cannot_be_is_told_in_one_line(tmp_path: Path, text: str | None, said: str) -> None:
    path = tmp_path / "cluster.yaml"
    if text is not None:
        path.write_text(text)
    code, output = run(command("--ephemeral", "--port", "0", "--cluster", str(path), name="up"))
    assert (code, "Traceback" in output) == (2, False)
    assert said in output
    assert output.startswith("error: ")
