"""The server over the process runtime: what a pod really writes, runs and listens to."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from drakit.nodeagent.runtimes.process import ProcessRuntime
from tests.nodeagent.runtimes.scene import POD as SCENE_POD
from tests.nodeagent.runtimes.scene import end, on_loop, process_runtime, remove_all, shell, start
from tests.nodeagent.server.hosts import Node, a_node, gathered, run_command, running_pod
from tests.nodeagent.server.portforward import tunnel

LOGS = "/containerLogs/default/web/main"


@asynccontextmanager
async def a_machine(directory: Path) -> AsyncIterator[tuple[Node, ProcessRuntime]]:
    async with process_runtime(directory) as runtime:
        try:
            async with a_node(directory, runtime=runtime) as node:
                metadata = {"name": SCENE_POD.name, "namespace": SCENE_POD.namespace, "uid": SCENE_POD.uid}
                node.pods.documents = [running_pod(metadata=metadata)]
                yield node, runtime
        finally:
            await remove_all(runtime)


async def logs(node: Node, **query: str) -> str:
    async with node.session() as session, session.get(LOGS, params=query) as response:
        return await response.text()


@on_loop
async def test_logs_of_this_attempt_and_the_one_before(tmp_path: Path) -> None:
    async with a_machine(tmp_path) as (node, runtime):
        first = await start(runtime, tmp_path, shell("echo first; echo wrong >&2"))
        await end(runtime, first)
        await end(runtime, await start(runtime, tmp_path, shell("echo second", attempt=1, log_path="main/1.log")))
        assert await logs(node) == "second\n"
        assert sorted((await logs(node, previous="true")).splitlines()) == ["first", "wrong"]
        assert (await logs(node, timestamps="true")).endswith("Z second\n")


@on_loop
async def test_a_follower_gets_everything_up_to_the_end(tmp_path: Path) -> None:
    async with a_machine(tmp_path) as (node, runtime):
        script = f"echo ready; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; seq 5000; echo bye"
        await start(runtime, tmp_path, shell(script))
        async with node.session() as session, session.get(LOGS, params={"follow": "true"}) as response:
            assert await response.content.readline() == b"ready\n"
            (tmp_path / "go").touch()
            rest = await response.content.read()
    assert rest.decode().split() == [*map(str, range(1, 5001)), "bye"]


@on_loop
async def test_exec_in_a_running_container(tmp_path: Path) -> None:
    async with a_machine(tmp_path) as (node, runtime):
        await start(runtime, tmp_path, shell("sleep 600"))
        channels = await run_command(node, ["sh", "-c", "cat; echo err >&2; exit 4"], stdin=b"x" * 500_000)
        assert (len(channels[1]), channels[2]) == (500_000, b"err\n")
        assert json.loads(channels[3])["details"]["causes"][0]["message"] == "4"
        status = json.loads((await run_command(node, ["/no/such/command"]))[3])
        assert status["status"] == "Failure"


@on_loop
async def test_a_terminal_in_a_running_container(tmp_path: Path) -> None:
    async with a_machine(tmp_path) as (node, runtime), node.session() as session:
        await start(runtime, tmp_path, shell("sleep 600"))
        script = "while [ \"$(stty size)\" != '40 132' ]; do sleep 0.02; done; stty size; tty"
        query = [("input", "1"), ("output", "1"), ("tty", "1")]
        query += [("command", word) for word in ("sh", "-c", script)]
        async with session.ws_connect(
            "/exec/default/web/main", params=query, protocols=("v5.channel.k8s.io",)
        ) as socket:
            await socket.send_bytes(b'\x04{"Width":132,"Height":40}')
            channels = await gathered(socket)
    assert b"40 132" in channels[1]
    assert b"/dev/pts/" in channels[1]


@on_loop
async def test_attach_to_what_a_container_reads_and_writes(tmp_path: Path) -> None:
    async with a_machine(tmp_path) as (node, runtime), node.session() as session:
        await start(runtime, tmp_path, shell("read line; echo got $line", stdin=True, stdin_once=True))
        query = {"input": "1", "output": "1"}
        async with session.ws_connect(
            "/attach/default/web/main", params=query, protocols=("v5.channel.k8s.io",)
        ) as socket:
            await socket.send_bytes(b"\x00hello\n")
            channels = await asyncio.wait_for(gathered(socket), 120)
    assert channels[1] == b"got hello\n"


@on_loop
async def test_a_port_that_a_container_listens_on(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    code = (
        f"import socket; s = socket.create_server(('127.0.0.1', {port})); print('ready', flush=True)\n"
        "c, _ = s.accept(); c.sendall(b'hello'); c.close()"
    )
    async with a_machine(tmp_path) as (node, runtime):
        await start(runtime, tmp_path, shell(f'exec python3 -c "{code}"'))
        async with node.session() as session, session.get(LOGS, params={"follow": "true"}) as response:
            assert await response.content.readline() == b"ready\n"
        async with tunnel(node) as client:
            data, errors = await client.connect(port)
            assert (await client.until_finished(data, errors))[data] == b"hello"
