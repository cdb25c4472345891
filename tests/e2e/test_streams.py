"""kubectl logs, exec, attach, cp and port-forward: through a server process to a node with real processes.

kubectl 1.31 and newer speak WebSocket, older ones SPDY.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from drakit.base.clock import RealClock
from drakit.client import NODES, PODS
from drakit.nodeagent.runtimes.contract import ContainerState
from drakit.nodeagent.server import NodeAccess, NodeAuthentication, NodeAuthorization
from tests.apiserver.nodes.clusters import create_pod
from tests.client.servers import on_loop
from tests.e2e.kubectl import KUBECTL
from tests.e2e.kubectl import Kubectl as PlainKubectl
from tests.e2e.processes import Running, apiserver
from tests.e2e.reached import reached
from tests.nodeagent.server.hosts import Node, a_node, record
from tests.nodeagent.server.portforward import a_service

pytestmark = pytest.mark.skipif(KUBECTL is None, reason="there is no kubectl on PATH")


@pytest.fixture(scope="module")
def streaming_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Path]]:
    data = tmp_path_factory.mktemp("data")
    with apiserver("--data-dir", str(data)) as running:
        yield running, data


class Kubectl:
    """As a user runs it, beside the loop that the node lives in."""

    def __init__(self, kubeconfig: Path, home: Path) -> None:
        self._environment = {
            "KUBECONFIG": str(kubeconfig), "HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8",
        }  # fmt: skip

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            KUBECTL or "kubectl", *arguments, env=self._environment, stdin=pipe, stdout=pipe, stderr=pipe
        )

    async def run(self, *arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
        process = await self.start(*arguments)
        stdout, stderr = await asyncio.wait_for(process.communicate(stdin), 60)
        return process.returncode or 0, stdout.decode(), stderr.decode()


@asynccontextmanager
async def a_pod(server: tuple[Running, Path], directory: Path) -> AsyncIterator[tuple[Kubectl, Node]]:
    """The pod `web` on a node that this test is, known to the server process by its certificate."""
    running, data = server
    async with reached(running.kubeconfig) as client:
        asked = NodeAccess(NodeAuthentication(client, RealClock()), NodeAuthorization(client, RealClock(), "node-a"))
        (directory / "pki").symlink_to(data / "pki")
        async with a_node(directory, access=asked) as node:
            node.log.write_text("")
            node.machine.add("main", ContainerState.RUNNING, node.log)
            status = {
                "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": int(node.url.rpartition(":")[2])}},
            }
            about = {"name": "node-a"}
            await client.create({"apiVersion": "v1", "kind": "Node", "metadata": about, "status": status})
            await create_pod(client, "web", node="node-a")
            await client.patch_named(
                PODS, "web", {"status": {"phase": "Running"}}, namespace="default", subresource="status"
            )
            try:
                yield Kubectl(running.kubeconfig, directory), node
            finally:
                await client.delete(PODS, "web", namespace="default", grace=0)
                await client.delete(NODES, "node-a")


@on_loop
async def test_logs(streaming_server: tuple[Running, Path], tmp_path: Path) -> None:
    async with a_pod(streaming_server, tmp_path) as (kubectl, node):
        node.log.write_text(record("one") + record("two", second=1))
        assert await kubectl.run("logs", "web") == (0, "one\ntwo\n", "")
        assert await kubectl.run("logs", "web", "--tail=1", "--timestamps") == (
            0, "2026-01-01T00:00:01.000000000Z two\n", "",
        )  # fmt: skip
        assert (await kubectl.run("logs", "web", "--since-time=2026-01-01T00:00:01Z"))[1] == "two\n"
        code, _, words = await kubectl.run("logs", "web", "-p")
        assert (code, words) == (
            1,
            'Error from server (BadRequest): previous terminated container "main" in pod "web" not found\n',
        )
        assert "container side is not valid for pod web" in (await kubectl.run("logs", "web", "-c", "side"))[2]


@on_loop
async def test_logs_that_are_followed(streaming_server: tuple[Running, Path], tmp_path: Path) -> None:
    async with a_pod(streaming_server, tmp_path) as (kubectl, node):
        process = await kubectl.start("logs", "-f", "web")
        assert process.stdout is not None
        for text in ("one", "two"):
            with node.log.open("a") as file:
                file.write(record(text))
            assert await asyncio.wait_for(process.stdout.readline(), 30) == f"{text}\n".encode()
        node.machine.set_state("main-0", ContainerState.EXITED)
        assert await asyncio.wait_for(process.wait(), 30) == 0


@on_loop
async def test_exec(streaming_server: tuple[Running, Path], tmp_path: Path) -> None:
    async with a_pod(streaming_server, tmp_path) as (kubectl, _):
        assert await kubectl.run("exec", "web", "--", "echo", "hello") == (0, "hello\n", "")
        assert (await kubectl.run("exec", "-i", "web", "--", "cat", stdin=b"typed"))[1] == "typed"
        code, out, err = await kubectl.run("exec", "web", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
        assert (code, out) == (7, "out\n")
        assert err == "err\ncommand terminated with exit code 7\n"
        code, _, words = await kubectl.run("exec", "web", "--", "/no/such/command")
        assert code == 1
        assert "exec: /no/such/command: No such file or directory" in words


@on_loop
async def test_exec_of_what_does_not_run(streaming_server: tuple[Running, Path], tmp_path: Path) -> None:
    async with a_pod(streaming_server, tmp_path) as (kubectl, node):
        node.machine.list.clear()
        code, _, words = await kubectl.run("exec", "web", "--", "ls")
        assert code == 1
        assert 'container not found ("main")' in words


@on_loop
async def test_attach(streaming_server: tuple[Running, Path], tmp_path: Path) -> None:
    async with a_pod(streaming_server, tmp_path) as (kubectl, _):
        code, out, _ = await kubectl.run("attach", "-i", "web", stdin=b"hello\n")
        assert (code, out) == (0, "hello\n")


@on_loop
async def test_cp_both_ways(streaming_server: tuple[Running, Path], tmp_path: Path) -> None:
    source, inside, back = tmp_path / "source.bin", tmp_path / "inside.bin", tmp_path / "back.bin"
    source.write_bytes(os.urandom(3_000_000))
    async with a_pod(streaming_server, tmp_path) as (kubectl, _):
        code, _, words = await kubectl.run("cp", str(source), f"web:{inside}")
        assert (code, words) == (0, "")
        assert inside.read_bytes() == source.read_bytes()
        code, _, _ = await kubectl.run("cp", f"web:{inside}", str(back))
        assert code == 0
    assert back.read_bytes() == source.read_bytes()


@on_loop
async def test_port_forward(streaming_server: tuple[Running, Path], tmp_path: Path) -> None:
    async def page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\nconnection: close\r\n\r\n" + b"x" * 100_000)
        await writer.drain()

    async with a_pod(streaming_server, tmp_path) as (kubectl, _), a_service(page) as port:
        process = await kubectl.start("port-forward", "web", f":{port}")
        assert process.stdout is not None
        line = (await asyncio.wait_for(process.stdout.readline(), 30)).decode()
        found = re.search(r"127\.0\.0\.1:(\d+) -> ", line)
        assert found, line
        async with aiohttp.ClientSession() as session:
            for _ in range(3):
                async with session.get(f"http://127.0.0.1:{found[1]}/") as response:
                    assert len(await response.read()) == 100_000
        process.terminate()
        await asyncio.wait_for(process.communicate(), 30)


POD = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - name: main
    image: example.com/none
    command: ["sh", "-c", "echo ready; exec sleep 600"]
"""


def test_a_whole_cluster_in_one_process_runs_commands_in_its_pods(tmp_path: Path) -> None:
    """The scheduler places the pod, the agent runs it, and its server is reached through the API server."""
    home = tmp_path / "home"
    home.mkdir()
    with apiserver("--data-dir", str(tmp_path / "data"), "--nodes", "1", name="up") as running:
        kubectl = PlainKubectl(running.kubeconfig, home)
        kubectl("apply", "-f", "-", stdin=POD)
        kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=50s")
        assert kubectl.until("ready", "logs", "-f", "web") == ["ready"]
        assert kubectl("exec", "-i", "web", "--", "cat", stdin="typed") == "typed"
        assert kubectl.run("exec", "web", "--", "sh", "-c", "exit 6").returncode == 6
        kubectl("delete", "pod", "web", "--now")
