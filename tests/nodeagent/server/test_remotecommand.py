"""exec and attach over WebSocket: streams, their ends, exit codes, terminals, clients that go."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from drakit.nodeagent.runtimes.contract import ContainerState
from tests.client.servers import on_loop
from tests.nodeagent.server.hosts import Node, a_node, came_true, gathered, python, run_command, settled

EXEC = "/exec/default/web/main"


async def running(node: Node) -> Node:
    node.machine.add("main", ContainerState.RUNNING, node.log)
    return node


def status_of(channels: dict[int, bytes]) -> dict[str, Any]:
    status: dict[str, Any] = json.loads(channels[3])
    return status


@pytest.mark.parametrize("protocol", ["v5.channel.k8s.io", "v4.channel.k8s.io"])
@on_loop
async def test_output_comes_apart_and_success_comes_last(tmp_path: Path, protocol: str) -> None:
    async with a_node(tmp_path) as node:
        await running(node)
        channels = await run_command(node, ["sh", "-c", "echo out; echo err >&2"], protocol=protocol)
    assert (channels[1], channels[2]) == (b"out\n", b"err\n")
    assert status_of(channels) == {"metadata": {}, "status": "Success"}


@on_loop
async def test_an_exit_code_is_told_the_way_kubectl_reads_it(tmp_path: Path) -> None:
    async with a_node(tmp_path) as node:
        await running(node)
        channels = await run_command(node, ["sh", "-c", "exit 7"])
    assert status_of(channels) == {
        "metadata": {},
        "status": "Failure",
        "message": "command terminated with non-zero exit code: exit status 7",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": "7"}]},
    }


@on_loop
async def test_a_command_that_is_not_there_is_told(tmp_path: Path) -> None:
    async with a_node(tmp_path) as node:
        await running(node)
        status = status_of(await run_command(node, ["/no/such/command"]))
    assert status["reason"] == "InternalError"
    assert status["message"] == (
        "Internal error occurred: error executing command in container: "
        "exec: /no/such/command: No such file or directory"
    )


@on_loop
async def test_stdin_ends_while_output_still_comes(tmp_path: Path) -> None:
    async with a_node(tmp_path) as node:
        await running(node)
        channels = await run_command(node, ["sh", "-c", "cat; echo after"], stdin=b"typed\n")
    assert channels[1] == b"typed\nafter\n"


@on_loop
async def test_a_tar_goes_in_and_comes_out_as_cp_does_it(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        entry = tarfile.TarInfo("data.bin")
        content = bytes(range(256)) * 2000
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    target = tmp_path / "in"
    target.mkdir()
    async with a_node(tmp_path) as node:
        await running(node)
        await run_command(node, ["tar", "xmf", "-", "-C", str(target)], stdin=packed.getvalue())
        assert (target / "data.bin").read_bytes() == content
        channels = await run_command(node, ["tar", "cf", "-", "-C", str(target), "data.bin"])
    with tarfile.open(fileobj=io.BytesIO(channels[1])) as archive:
        found = archive.extractfile("data.bin")
        assert found is not None
        assert found.read() == content


@on_loop
async def test_a_terminal_has_the_size_that_the_client_says(tmp_path: Path) -> None:
    query = [("output", "1"), ("error", "1"), ("input", "1"), ("tty", "1")]
    command = ["sh", "-c", "while [ \"$(stty size)\" != '40 132' ]; do sleep 0.01; done; stty size"]
    async with a_node(tmp_path) as node, node.session() as session:
        await running(node)
        params = [*query, *(("command", word) for word in command)]
        async with session.ws_connect(EXEC, params=params, protocols=("v5.channel.k8s.io",)) as socket:
            await socket.send_bytes(b"\x04nonsense")
            await socket.send_bytes(b'\x04{"Width":0,"Height":70000}')
            await socket.send_bytes(b'\x04{"Width":132,"Height":40}')
            channels = await gathered(socket)
        assert channels[1] == b"40 132\n"
        assert 2 not in channels
        assert node.machine.started[0].sizes == [(132, 40)]


@on_loop
async def test_a_client_that_goes_takes_its_command_with_it(tmp_path: Path) -> None:
    async with a_node(tmp_path) as node, node.session() as session:
        await running(node)
        query = [("output", "1"), ("command", "sh"), ("command", "-c"), ("command", "echo go; exec sleep 600")]
        async with session.ws_connect(EXEC, params=query, protocols=("v5.channel.k8s.io",)) as socket:
            assert await socket.receive_bytes() == b"\x01go\n"
        assert await asyncio.wait_for(node.machine.started[0].wait(), 120) == -9


@on_loop
async def test_a_connection_that_breaks_takes_its_command_with_it(tmp_path: Path) -> None:
    async with a_node(tmp_path) as node, node.session() as session:
        await running(node)
        # It reads nothing, so the server waits for it to take what is typed.
        query = [("input", "1"), ("output", "1"), ("command", "sleep"), ("command", "600")]
        socket = await session.ws_connect(EXEC, params=query, protocols=("v5.channel.k8s.io",))
        for _ in range(10):
            await socket.send_bytes(b"\x00" + b"x" * 30_000)
        await came_true(lambda: bool(node.machine.started))
        assert socket._response.connection is not None
        assert socket._response.connection.transport is not None
        socket._response.connection.transport.abort()
        assert await asyncio.wait_for(node.machine.started[0].wait(), 120) == -9


@on_loop
async def test_huge_output_waits_for_a_client_that_does_not_read(tmp_path: Path) -> None:
    size = 20_000_000
    command = python(
        f"import os\nfor _ in range({size // 100_000}): os.write(1, b'x' * 100_000)\nos.write(2, b'all written')"
    )
    async with a_node(tmp_path) as node, node.session() as session:
        await running(node)
        query = [("output", "1"), ("error", "1"), *(("command", word) for word in command)]
        async with session.ws_connect(EXEC, params=query, protocols=("v5.channel.k8s.io",)) as socket:
            await came_true(lambda: bool(node.machine.started))
            output = node.machine.started[0].stdout
            assert 0 < await settled(lambda: output.bytes) < size
            channels = await gathered(socket)
    assert len(channels[1]) == size
    assert channels[2] == b"all written"
    assert status_of(channels)["status"] == "Success"


@on_loop
async def test_output_that_nobody_wants_does_not_hold_up_the_command(tmp_path: Path) -> None:
    command = python("print('x' * 1_000_000); import sys; sys.exit(3)")
    async with a_node(tmp_path) as node, node.session() as session:
        await running(node)
        query = [("error", "1"), *(("command", word) for word in command)]
        async with session.ws_connect(EXEC, params=query, protocols=("v5.channel.k8s.io",)) as socket:
            channels = await gathered(socket)
    assert 1 not in channels
    assert status_of(channels)["details"]["causes"][0]["message"] == "3"


@on_loop
async def test_clients_of_long_ago_get_errors_as_text_and_a_first_word(tmp_path: Path) -> None:
    async with a_node(tmp_path) as node, node.session() as session:
        await running(node)
        query = [("output", "1"), ("command", "sh"), ("command", "-c"), ("command", "exit 2")]
        async with session.ws_connect(EXEC, params=query, protocols=("channel.k8s.io",)) as socket:
            assert await socket.receive_bytes() == b"\x01"
            assert await socket.receive_bytes() == b"\x03command terminated with non-zero exit code: exit status 2"


@on_loop
async def test_the_base64_channels_carry_text(tmp_path: Path) -> None:
    async with a_node(tmp_path) as node, node.session() as session:
        await running(node)
        query = [("input", "1"), ("output", "1"), ("command", "head"), ("command", "-n1")]
        async with session.ws_connect(EXEC, params=query, protocols=("v4.base64.channel.k8s.io",)) as socket:
            assert await socket.receive_str() == "1"
            await socket.send_str("0" + base64.b64encode(b"typed\n").decode())
            assert await socket.receive_str() == "1" + base64.b64encode(b"typed\n").decode()
            status = (await socket.receive_str())[1:]
    assert json.loads(base64.b64decode(status))["status"] == "Success"


@pytest.mark.parametrize(("message", "words"), [(b"", "without a channel"), (b"\xff", "without its number")])
@on_loop
async def test_a_message_that_is_none_ends_the_connection_and_the_command(
    tmp_path: Path, message: bytes, words: str
) -> None:
    async with a_node(tmp_path) as node, node.session() as session:
        await running(node)
        query = [("output", "1"), ("command", "sleep"), ("command", "600")]
        async with session.ws_connect(EXEC, params=query, protocols=("v5.channel.k8s.io",)) as socket:
            await socket.send_bytes(message)
            closing = await socket.receive()
        assert (closing.type, closing.data) == (aiohttp.WSMsgType.CLOSE, 1002)
        assert words in (closing.extra or "")
        assert await node.machine.started[0].wait() == -9


@on_loop
async def test_attach_joins_a_container_and_ends_well(tmp_path: Path) -> None:
    async with a_node(tmp_path) as node, node.session() as session:
        await running(node)
        path, query = "/attach/default/web/main", {"input": "1", "output": "1"}
        async with session.ws_connect(path, params=query, protocols=("v5.channel.k8s.io",)) as socket:
            await socket.send_bytes(b"\x00hello")
            assert await socket.receive_bytes() == b"\x01hello"
            await socket.send_bytes(b"\xff\x00")
            channels = await gathered(socket)
    assert status_of(channels)["status"] == "Success"


@pytest.mark.parametrize(
    ("path", "query", "code", "text"),
    [
        ("/exec/default/nobody/main", "output=1&command=ls", 404, 'pod "nobody" does not exist'),
        ("/exec/default/web/uid-2/main", "output=1&command=ls", 404, 'pod "web" does not exist: another one has'),
        ("/exec/default/web/side", "output=1&command=ls", 404, 'container "side" not found in pod "web"'),
        (EXEC, "output=1", 400, "you must specify at least one command for the container"),
        (EXEC, "command=ls", 400, "you must specify at least 1 of stdin, stdout, stderr"),
    ],
)
@on_loop
async def test_what_cannot_be_run_is_told_before_the_upgrade(
    tmp_path: Path, path: str, query: str, code: int, text: str
) -> None:
    async with a_node(tmp_path) as node, node.session() as session:
        await running(node)
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(f"{path}?{query}", protocols=("v5.channel.k8s.io",))
        assert refused.value.status == code
        async with session.get(f"{path}?{query}", headers={"upgrade": "websocket"}) as response:
            assert (await response.text()).startswith(text)


@on_loop
async def test_a_container_that_does_not_run_cannot_be_entered(tmp_path: Path) -> None:
    async with a_node(tmp_path) as node, node.session() as session:
        node.machine.add("main", ContainerState.EXITED)
        async with session.get(f"{EXEC}?output=1&command=ls") as response:
            assert (response.status, await response.text()) == (500, 'container not found ("main")')


@pytest.mark.parametrize(
    ("upgrade", "words"), [("h2c", "go over WebSocket or SPDY/3.1, not over"), ("", "Upgrade request required")]
)
@on_loop
async def test_a_client_that_asks_for_something_else_is_told_what_is_spoken(
    tmp_path: Path, upgrade: str, words: str
) -> None:
    headers = {"connection": "upgrade", "upgrade": upgrade} if upgrade else {}
    async with a_node(tmp_path) as node, node.session() as session:
        await running(node)
        async with session.post(f"{EXEC}?output=1&command=ls", headers=headers) as response:
            assert response.status == 400
            assert words in await response.text()


@on_loop
async def test_a_protocol_that_is_not_spoken_is_told_with_those_that_are(tmp_path: Path) -> None:
    headers = {"upgrade": "websocket", "sec-websocket-protocol": "v9.channel.k8s.io"}
    async with a_node(tmp_path) as node, node.session() as session:
        await running(node)
        async with session.get(f"{EXEC}?output=1&command=ls", headers=headers) as response:
            assert response.status == 400
            assert (await response.text()).startswith(
                "requested protocol(s) are not supported: [v9.channel.k8s.io]; supports [v5.channel.k8s.io v4."
            )


@on_loop
async def test_run_answers_with_what_a_command_wrote(tmp_path: Path) -> None:
    async with a_node(tmp_path) as node, node.session() as session:
        await running(node)
        async with session.post("/run/default/web/main", params={"cmd": "echo two words"}) as response:
            assert (response.status, await response.text()) == (200, "two words\n")
        async with session.post("/run/default/web/main", params={"cmd": "false"}) as response:
            assert (response.status, await response.text()) == (500, "command exited with 1: ")
