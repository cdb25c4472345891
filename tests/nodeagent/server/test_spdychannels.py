"""exec, attach and port-forward over SPDY itself, as older kubectls and Go programs speak it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest

from drakit.nodeagent.runtimes.contract import ContainerState
from drakit.nodeagent.server import spdychannels
from drakit.nodeagent.server.spdy import frames
from tests.client.servers import on_loop
from tests.nodeagent.server.hosts import Node, a_node, came_true, python, settled
from tests.nodeagent.server.portforward import a_service, echo
from tests.nodeagent.server.spdyclient import SpdyClient

EXEC = "/exec/default/web/main"


@asynccontextmanager
async def upgraded(node: Node, path: str, query: list[tuple[str, str]], *protocols: str) -> AsyncIterator[SpdyClient]:
    port = int(node.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=node.client_context())
    lines = [f"POST {path}?{urlencode(query)} HTTP/1.1", "Host: node", "Connection: Upgrade", "Upgrade: SPDY/3.1"]
    lines += ["Content-Length: 0", *(f"X-Stream-Protocol-Version: {each}" for each in protocols), "", ""]
    writer.write("\r\n".join(lines).encode())
    try:
        yield SpdyClient(reader, writer, (await reader.readuntil(b"\r\n\r\n")).decode())
    finally:
        writer.transport.abort()


def asked(*command: str, **options: str) -> list[tuple[str, str]]:
    return [*options.items(), *(("command", word) for word in command)]


@on_loop
async def test_a_command_with_all_its_streams(tmp_path: Path) -> None:
    query = asked("sh", "-c", "cat; echo err >&2; exit 5", input="1", output="1", error="1")
    async with a_node(tmp_path) as node:
        node.machine.add("main", ContainerState.RUNNING)
        async with upgraded(node, EXEC, query, "v4.channel.k8s.io", "v3.channel.k8s.io") as client:
            assert client.head.startswith("HTTP/1.1 101")
            assert "X-Stream-Protocol-Version: v4.channel.k8s.io\r\n" in client.head
            numbers = await client.streams("error", "stdin", "stdout", "stderr")
            await client.send(frames.data_frame(numbers["stdin"], b"typed"))
            await client.send(frames.data_frame(numbers["stdin"], b"", fin=True))
            got, ended = await client.everything()
    assert (got[numbers["stdout"]], got[numbers["stderr"]]) == (b"typed", b"err\n")
    assert json.loads(got[numbers["error"]])["details"]["causes"] == [{"reason": "ExitCode", "message": "5"}]
    assert {numbers["stdout"], numbers["stderr"], numbers["error"]} <= set(ended)


@on_loop
async def test_a_terminal_is_resized_by_lines_of_json(tmp_path: Path) -> None:
    script = "while [ \"$(stty size)\" != '40 132' ]; do sleep 0.01; done; stty size"
    async with a_node(tmp_path) as node:
        node.machine.add("main", ContainerState.RUNNING)
        query = asked("sh", "-c", script, output="1", tty="1")
        async with upgraded(node, EXEC, query, "v4.channel.k8s.io") as client:
            numbers = await client.streams("error", "stdout", "resize")
            sizes = b'{"Width":80,"Height":24}\n{"Width":132,"Height":40}\n'
            await client.send(frames.data_frame(numbers["resize"], sizes[:30]))
            await client.send(frames.data_frame(numbers["resize"], sizes[30:]))
            got, _ = await client.everything()
    assert got[numbers["stdout"]] == b"40 132\n"
    assert node.machine.started[0].sizes == [(80, 24), (132, 40)]


@pytest.mark.parametrize("protocols", [("v2.channel.k8s.io",), ()])
@on_loop
async def test_the_oldest_clients_get_errors_as_text(tmp_path: Path, protocols: tuple[str, ...]) -> None:
    async with a_node(tmp_path) as node:
        node.machine.add("main", ContainerState.RUNNING)
        async with upgraded(node, EXEC, asked("false", output="1"), *protocols) as client:
            numbers = await client.streams("error", "stdout")
            got, _ = await client.everything()
    assert got[numbers["error"]] == b"command terminated with non-zero exit code: exit status 1"


@on_loop
async def test_a_protocol_that_is_not_spoken_is_refused(tmp_path: Path) -> None:
    async with a_node(tmp_path) as node:
        node.machine.add("main", ContainerState.RUNNING)
        async with upgraded(node, EXEC, asked("ls", output="1"), "v9.channel.k8s.io") as client:
            assert client.head.startswith("HTTP/1.1 403")
            assert "X-Accepted-Stream-Protocol-Versions: v4.channel.k8s.io,v3." in client.head


@on_loop
async def test_a_client_that_goes_takes_its_command_with_it(tmp_path: Path) -> None:
    async with a_node(tmp_path) as node:
        node.machine.add("main", ContainerState.RUNNING)
        async with upgraded(node, EXEC, asked("sleep", "600", output="1"), "v4.channel.k8s.io") as client:
            await client.streams("error", "stdout")
            await came_true(lambda: bool(node.machine.started))
        assert await asyncio.wait_for(node.machine.started[0].wait(), 120) == -9


@on_loop
async def test_a_client_that_does_not_open_its_streams_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spdychannels, "STREAMS_SECONDS", 0.05)
    async with a_node(tmp_path) as node:
        node.machine.add("main", ContainerState.RUNNING)
        async with upgraded(node, EXEC, asked("ls", output="1"), "v4.channel.k8s.io") as client:
            await client.streams("error")
            assert await client.everything() == ({}, [])
        assert node.machine.started == []


@on_loop
async def test_bytes_that_are_no_spdy_end_the_command(tmp_path: Path) -> None:
    async with a_node(tmp_path) as node:
        node.machine.add("main", ContainerState.RUNNING)
        async with upgraded(node, EXEC, asked("sleep", "600", output="1"), "v4.channel.k8s.io") as client:
            await client.streams("error", "stdout")
            await came_true(lambda: bool(node.machine.started))
            await client.send(b"\x80\x02\x00\x01\x00\x00\x00\x00")
            await client.everything()
        assert await node.machine.started[0].wait() == -9


@on_loop
async def test_huge_output_waits_for_a_client_that_does_not_read(tmp_path: Path) -> None:
    size = 20_000_000
    command = python(f"import os\nfor _ in range({size // 100_000}): os.write(1, b'x' * 100_000)")
    async with a_node(tmp_path) as node:
        node.machine.add("main", ContainerState.RUNNING)
        async with upgraded(node, EXEC, asked(*command, output="1"), "v4.channel.k8s.io") as client:
            numbers = await client.streams("error", "stdout")
            await came_true(lambda: bool(node.machine.started))
            output = node.machine.started[0].stdout
            assert 0 < await settled(lambda: output.bytes) < size
            got, _ = await client.everything()
    assert len(got[numbers["stdout"]]) == size


@on_loop
async def test_huge_input_waits_for_a_command_that_does_not_read(tmp_path: Path) -> None:
    async with a_node(tmp_path) as node:
        node.machine.add("main", ContainerState.RUNNING)
        gate = tmp_path / "gate"
        command = ["sh", "-c", f"while [ ! -e {gate} ]; do sleep 0.01; done; wc -c"]
        async with upgraded(node, EXEC, asked(*command, input="1", output="1"), "v4.channel.k8s.io") as client:
            numbers = await client.streams("error", "stdin", "stdout")
            sent = 0

            async def flood() -> None:
                nonlocal sent
                for _ in range(1000):
                    await client.send(frames.data_frame(numbers["stdin"], b"x" * 20_000))
                    sent += 20_000
                await client.send(frames.data_frame(numbers["stdin"], b"", fin=True))

            flooding = asyncio.create_task(flood())
            assert 0 < await settled(lambda: sent) < 20_000_000
            gate.touch()
            got, _ = await client.everything()
            await flooding
    assert got[numbers["stdout"]].strip() == b"20000000"


@on_loop
async def test_a_port_is_forwarded(tmp_path: Path) -> None:
    path = "/portForward/default/web"
    async with (
        a_node(tmp_path) as node,
        a_service(echo) as port,
        upgraded(node, path, [], "portforward.k8s.io") as client,
    ):
        await client.open(streamType="error", port=str(port), requestID="0")
        data = await client.open(streamType="data", port=str(port), requestID="0")
        await client.send(frames.data_frame(data, b"ask", fin=True))
        reader, answer = frames.FrameReader(), b""
        while not answer.endswith(b"ask"):
            for frame in reader.feed(await client.reader.read(65536)):
                answer += frame.data if isinstance(frame, frames.DataFrame) else b""
    assert answer == b"got ask"
