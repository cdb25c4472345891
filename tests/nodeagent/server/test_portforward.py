"""Port-forward: the classic channels, and SPDY in a WebSocket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from drakit.nodeagent.runtimes.contract import SandboxState
from drakit.nodeagent.server.spdy import frames
from tests.client.servers import on_loop
from tests.nodeagent.server.hosts import Node, a_node, settled
from tests.nodeagent.server.portforward import PATH, TUNNEL, a_service, echo, greet, tunnel


@asynccontextmanager
async def classic(node: Node, query: str, *protocols: str) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    async with node.session() as session, session.ws_connect(f"{PATH}?{query}", protocols=protocols) as socket:
        yield socket


@on_loop
async def test_a_tunnelled_connection_goes_both_ways_and_ends_by_halves(tmp_path: Path) -> None:
    async with a_node(tmp_path) as node, a_service(echo) as port, tunnel(node) as client:
        data, errors = await client.connect(port)
        await client.send(frames.data_frame(data, b"ask"))
        await client.send(frames.data_frame(data, b"ing", fin=True))
        assert await client.until_finished(data, errors) == {data: b"got asking", errors: b""}


@on_loop
async def test_several_connections_share_one_tunnel(tmp_path: Path) -> None:
    async with a_node(tmp_path) as node, a_service(echo) as port, tunnel(node) as client:
        first, second = [await client.connect(port, request) for request in ("0", "1")]
        await client.send(frames.data_frame(second[0], b"two", fin=True))
        await client.send(frames.data_frame(first[0], b"one", fin=True))
        got = await client.until_finished(*first, *second)
    assert (got[first[0]], got[second[0]]) == (b"got one", b"got two")


@on_loop
async def test_clients_without_request_ids_are_served_too(tmp_path: Path) -> None:
    async with a_node(tmp_path) as node, a_service(greet) as port, tunnel(node) as client:
        data, errors = await client.connect(port, "")
        assert await client.until_finished(data, errors) == {data: b"hello", errors: b""}


@on_loop
async def test_a_port_where_nobody_listens_is_told_on_the_error_stream(tmp_path: Path) -> None:
    async with a_service(greet) as port:
        pass
    async with a_node(tmp_path) as node, tunnel(node) as client:
        data, errors = await client.connect(port)
        got = await client.until_finished(data, errors)
    assert got[errors].startswith(f"error forwarding port {port} to pod web, uid uid-1: connect to port".encode())


@pytest.mark.parametrize(("kind", "port"), [("data", "80"), ("gossip", "80"), ("error", "0"), ("error", "http")])
@on_loop
async def test_a_stream_that_makes_no_sense_is_refused(tmp_path: Path, kind: str, port: str) -> None:
    async with a_node(tmp_path) as node, tunnel(node) as client:
        number = await client.open(kind, port)
        async for frame in client.frames():
            assert frame == frames.ControlFrame(frames.RST_STREAM, 0, frames.rst_stream(number, 3)[8:])
            break


@on_loop
async def test_bytes_that_are_no_spdy_end_the_tunnel(tmp_path: Path) -> None:
    async with a_node(tmp_path) as node, node.session() as session:
        async with session.ws_connect(PATH, protocols=(TUNNEL,)) as socket:
            await socket.send_bytes(b"\x80\x02\x00\x01\x00\x00\x00\x00")
            closing = await socket.receive()
        assert (closing.data, closing.extra) == (1002, "SPDY version 2; only 3 is spoken here")


@on_loop
async def test_a_connection_that_the_client_drops_ends_the_one_to_the_port(tmp_path: Path) -> None:
    ended = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"ready")
        while await reader.read(100):
            pass
        ended.set()
        await asyncio.Event().wait()  # it never answers, and never ends by itself

    async with a_node(tmp_path) as node, a_service(silent) as port, tunnel(node) as client:
        data, _ = await client.connect(port)
        async for frame in client.frames():
            if frame == frames.DataFrame(data, b"ready"):
                break
        await client.send(frames.rst_stream(data, frames.RST_CANCEL))
        await asyncio.wait_for(ended.wait(), 120)


@on_loop
async def test_a_tunnel_that_ends_takes_its_connections_with_it(tmp_path: Path) -> None:
    ended = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"ready")
        await reader.read()
        ended.set()

    async with a_node(tmp_path) as node, a_service(silent) as port:
        async with tunnel(node) as client:
            await client.connect(port)
            async for frame in client.frames():
                if isinstance(frame, frames.DataFrame):
                    break
        await asyncio.wait_for(ended.wait(), 120)


@on_loop
async def test_a_flood_from_the_port_waits_for_a_client_that_does_not_read(tmp_path: Path) -> None:
    sent = 0

    async def flood(__: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        for _ in range(400):
            writer.write(b"x" * 50_000)
            await writer.drain()
            sent += 50_000

    async with a_node(tmp_path) as node, a_service(flood) as port, tunnel(node) as client:
        data, errors = await client.connect(port)
        assert 0 < await settled(lambda: sent) < 20_000_000
        got = await client.until_finished(data, errors)
    assert len(got[data]) == 20_000_000


@pytest.mark.parametrize("protocols", [("v4.channel.k8s.io",), ()])
@on_loop
async def test_the_classic_channels_begin_with_their_port(tmp_path: Path, protocols: tuple[str, ...]) -> None:
    async with a_node(tmp_path) as node, a_service(greet) as port, classic(node, f"port={port}", *protocols) as socket:
        number = port.to_bytes(2, "little")
        assert [await socket.receive_bytes() for _ in range(3)] == [b"\0" + number, b"\1" + number, b"\0hello"]
        assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE


@on_loop
async def test_several_ports_have_channels_of_their_own(tmp_path: Path) -> None:
    async def double(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(2 * await reader.readexactly(2))

    async with a_node(tmp_path) as node, a_service(double) as first, a_service(double) as second:
        query = f"port={first},{second}"
        async with node.session() as session, session.ws_connect(
            f"{PATH}?{query}", protocols=("v4.channel.k8s.io",)
        ) as socket:  # fmt: skip
            for _ in range(4):
                await socket.receive_bytes()
            await socket.send_bytes(b"\x02hi")
            await socket.send_bytes(b"\x09to no port")
            assert await socket.receive_bytes() == b"\x02hihi"
            await socket.send_bytes(b"\x00ho")
            assert await socket.receive_bytes() == b"\x00hoho"


@on_loop
async def test_a_classic_port_where_nobody_listens_is_told_on_its_error_channel(tmp_path: Path) -> None:
    async with a_service(greet) as port:
        pass
    async with a_node(tmp_path) as node, classic(node, f"port={port}", "v4.channel.k8s.io") as socket:
        messages = [await socket.receive_bytes() for _ in range(3)]
    assert messages[2].startswith(f"\x01error forwarding port {port} to pod web".encode())


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("", 'query parameter "port" is required'),
        ("?port=", 'query parameter "port" cannot be empty'),
        ("?port=0", 'port "0" must be > 0'),
        ("?port=70000", 'unable to parse "70000" as a port'),
        ("?port=" + ",".join(["80"] * 101), "at most 100"),
    ],
)
@on_loop
async def test_ports_that_are_none_are_refused(tmp_path: Path, query: str, words: str) -> None:
    async with a_node(tmp_path) as node, node.session(upgrade="websocket") as session, session.get(
        PATH + query
    ) as response:  # fmt: skip
        assert response.status == 400
        assert words in await response.text()


@on_loop
async def test_a_pod_whose_sandbox_has_stopped_has_no_ports(tmp_path: Path) -> None:
    async with a_node(tmp_path) as node, node.session() as session:
        node.machine.boxes = [
            type(box)(box.id, box.pod, box.attempt, SandboxState.NOT_READY, box.created) for box in node.machine.boxes
        ]
        async with session.get(PATH) as response:
            assert (response.status, await response.text()) == (500, 'sandbox of pod "web" is not running')
