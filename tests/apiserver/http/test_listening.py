"""The listener on a real socket: TLS identities, and clients that misbehave before there is a request."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from unittest.mock import MagicMock, patch

import pytest
import uvicorn
from uvicorn.server import ServerState

from drakit.api.exchange import Request, Response
from drakit.apiserver.auth.certificates import Authority
from drakit.apiserver.http import listener as listening
from drakit.apiserver.http import protocol as protocols
from drakit.apiserver.http.asgi import Application
from drakit.apiserver.http.listener import Listener, Security, bind
from drakit.apiserver.http.protocol import HEADER_BYTES, Protocol
from drakit.base.clock import RealClock
from tests.apiserver.calls import CLAIMS, Api, on_loop, serving
from tests.attacks.sockets import whole_answer
from tests.builders.documents import claim_document

WHO = b"POST /apis/authentication.k8s.io/v1/selfsubjectreviews HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n"

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"

TURNED_AWAY = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


@asynccontextmanager
async def on_socket(api: Api, security: Security | None = None) -> AsyncIterator[int]:
    """Serve on a free port."""
    bound = bind("127.0.0.1", 0)
    port = int(bound.getsockname()[1])
    async with Listener(api.server, bound, security).running():
        yield port


@on_loop
async def test_a_client_certificate_is_an_identity_and_none_is_anonymous(tmp_path: Path) -> None:
    authority = Authority(tmp_path, RealClock().now())
    security = Security(authority.server(("127.0.0.1",)), (authority.files.certificate,))
    trusting = ssl.create_default_context(cafile=str(authority.files.certificate))
    identified = ssl.create_default_context(cafile=str(authority.files.certificate))
    ann = authority.client("ann", ("dev",), "ann")
    identified.load_cert_chain(ann.certificate, ann.key)
    async with serving() as api, on_socket(api, security) as port:
        for context, name in ((identified, "ann"), (trusting, "system:anonymous")):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
            writer.write(WHO)
            code, body = await whole_answer(reader)
            assert (code, json.loads(body)["status"]["userInfo"]["username"]) == (201, name)
            writer.close()


@on_loop
async def test_a_head_that_never_ends_is_cut_off() -> None:
    async with serving() as api, on_socket(api) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /healthz HTTP/1.1\r\nhost: x\r\n")
        try:
            for _ in range(HEADER_BYTES // 65536 + 8):
                writer.write(b"x-" + b"a" * 65530 + b": b\r\n")
                await writer.drain()
            assert await reader.read() == b""
        except ConnectionError:
            pass
        writer.close()


@on_loop
async def test_a_client_that_sends_half_a_head_is_hung_up_on() -> None:
    with patch.object(protocols, "HEADER_SECONDS", 0.02):
        async with serving() as api, on_socket(api) as port:
            for start in (b"", b"GET /healthz HT"):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(start)
                assert await reader.read() == b""
                writer.close()


async def fill(api: Api, count: int) -> None:
    for number in range(count):
        body = {"metadata": {"name": f"big-{number}"}, "data": {"a": "x" * 900_000}}
        assert (await api.create(CONFIG_MAPS, body)).code == 201


@on_loop
async def test_an_answer_that_nobody_reads_is_thrown_away_with_its_connection() -> None:
    lost = asyncio.Event()

    class Observed(Protocol):
        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            lost.set()

    with patch.object(protocols, "STALL_SECONDS", 0.02), patch.object(listening, "Protocol", Observed):
        async with serving() as api, on_socket(api) as port:
            await fill(api, 24)
            with socket.socket() as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                client.connect(("127.0.0.1", port))
                client.sendall(f"GET {CONFIG_MAPS} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
                await lost.wait()


@on_loop
async def test_a_reader_is_given_time_as_long_as_it_reads() -> None:
    async with serving() as api:
        config = uvicorn.Config(Application(api.server), lifespan="off", log_config=None)
        protocol = Protocol(config, ServerState(), {})
        transport, loop = MagicMock(), MagicMock()
        protocol.loop = loop
        protocol.connection_made(transport)
        for unread in (900_000, 800_000, 100_000):
            transport.get_write_buffer_size.return_value = unread
            protocol.pause_writing() if unread == 900_000 else protocol._check_reader()
        transport.abort.assert_not_called()
        protocol._check_reader()
        transport.abort.assert_called_once()


@on_loop
async def test_a_body_that_goes_on_after_its_refusal_is_cut_off() -> None:
    async with serving() as api, on_socket(api) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"POST {CLAIMS} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n".encode())
        with pytest.raises(ConnectionError):
            await go_on(writer)
        writer.close()


async def go_on(writer: asyncio.StreamWriter) -> None:
    for _ in range(100):
        writer.write(b"100000\r\n" + b"x" * 0x100000 + b"\r\n")
        await writer.drain()


@on_loop
async def test_requests_follow_each_other_on_one_connection() -> None:
    body = json.dumps(claim_document("a")).encode()
    async with serving() as api, on_socket(api) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"POST {CLAIMS} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        head += f"content-length: {len(body)}\r\n\r\n"
        for expected in (201, 409, 409):
            writer.write(head.encode() + body)
            assert (await whole_answer(reader))[0] == expected
        writer.close()


@on_loop
async def test_stopping_ends_watches_at_once_and_in_order() -> None:
    async with serving() as api:
        async with on_socket(api) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(f"GET {CLAIMS}?watch=1 HTTP/1.1\r\nhost: x\r\n\r\n".encode())
            await reader.readuntil(b"\r\n\r\n")
        assert await reader.read() == b"0\r\n\r\n" + TURNED_AWAY
        writer.close()


@on_loop
async def test_stopping_tells_connections_that_wait_that_nothing_more_is_done() -> None:
    """A request that crosses the end has an answer: it was not handled, and may be sent elsewhere."""
    async with serving() as api:
        async with on_socket(api) as port:
            idle, idle_writer = await asyncio.open_connection("127.0.0.1", port)
            halfway, halfway_writer = await asyncio.open_connection("127.0.0.1", port)
            idle_writer.write(b"GET /version HTTP/1.1\r\nhost: x\r\n\r\n")
            assert (await whole_answer(idle))[0] == 200
            halfway_writer.write(f"DELETE {CLAIMS}/a HTTP/1.1\r\nhost: x\r\n".encode())
            await halfway_writer.drain()
        assert await idle.read() == TURNED_AWAY
        assert await halfway.read() == TURNED_AWAY
        idle_writer.close()
        halfway_writer.close()


def test_connections_do_not_hold_back_the_end_of_an_answer() -> None:
    with bind("127.0.0.1", 0) as bound, socket.create_connection(bound.getsockname()):
        bound.setblocking(True)
        accepted, _ = bound.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


class _NeverAnswers:
    """A server whose requests go on until they are given up."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def handle(self, _request: Request) -> Response:
        self.asked.set()
        await asyncio.get_running_loop().create_future()
        raise AssertionError("nobody gives the answer")


@on_loop
async def test_a_server_that_is_told_twice_to_stop_leaves_no_connection_open() -> None:
    server, bound = _NeverAnswers(), bind("127.0.0.1", 0)
    listener = Listener(server, bound)
    served = asyncio.create_task(listener.serve())
    reader, writer = await asyncio.open_connection(*bound.getsockname()[:2])
    writer.write(b"GET /version HTTP/1.1\r\nhost: localhost\r\n\r\n")
    await server.asked.wait()
    listener.stop()
    listener.stop()
    await served
    with suppress(ConnectionError):
        assert await asyncio.wait_for(reader.read(), 10) == b""
    writer.close()
