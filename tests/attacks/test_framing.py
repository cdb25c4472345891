"""Bytes around a request: odd framing is refused, costs little, and is never read as a second request."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from unittest.mock import MagicMock, patch

import pytest
import uvicorn
from uvicorn.server import ServerState

from drakit.apiserver import Settings
from drakit.apiserver.auth.audit import AuditLog
from drakit.apiserver.http import listener, protocol
from drakit.apiserver.http.asgi import Application
from drakit.apiserver.http.protocol import URL_BYTES
from drakit.apiserver.http.turns import Turns
from tests.apiserver.calls import CLAIMS, on_loop, serving
from tests.attacks.sockets import asked, code_of, connect, get, on_socket, whole_answer

HIDDEN = b"GET /version HTTP/1.1\r\nhost: x\r\n\r\n"


def chunked(body: bytes) -> bytes:
    return f"POST {CLAIMS} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n".encode() + body


@pytest.mark.parametrize(
    "headers",
    [
        "content-length: 5\r\ntransfer-encoding: chunked",
        "content-length: 5\r\ncontent-length: 6",
        "transfer-encoding: chunked, identity",
        "transfer-encoding : chunked",
        "transfer-encoding: xchunked",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
        "content-length: +5",
        "content-length: -1",
    ],
)
def test_two_ways_to_read_a_length_are_refused_and_hide_no_request(headers: str) -> None:
    @on_loop
    async def run() -> None:
        async with on_socket() as (_, port):
            reader, writer = await connect(port)
            writer.write(f"POST {CLAIMS} HTTP/1.1\r\nhost: x\r\n{headers}\r\n\r\n0\r\n\r\n".encode() + HIDDEN)
            answers = await asyncio.wait_for(reader.read(), 60)  # until the server closes the connection
            assert answers.startswith(b"HTTP/1.1 400")
            assert answers.count(b"HTTP/1.1 ") == 1
            writer.close()

    run()


@pytest.mark.parametrize("length", [URL_BYTES - 100, URL_BYTES + 1, URL_BYTES + 70_000])
def test_a_url_that_is_too_long_is_told_so_and_noted(length: int, tmp_path: Path) -> None:
    @on_loop
    async def run() -> None:
        with AuditLog(tmp_path / "audit.log") as audit:
            async with on_socket(Settings(audit=audit)) as (_, port):
                code = await asked(port, get("/healthz?".ljust(length, "x")))
                assert code == (200 if length < URL_BYTES else 414)
        assert (tmp_path / "audit.log").read_text().count("\n") == 1

    run()


@pytest.mark.parametrize("framing", [b"1;" + b"x" * 3000, b"2\r\n{}\r\n0\r\n" + b"t: x\r\n" * 500, b"1\r\na\r\n" * 500])
def test_a_body_of_framing_alone_is_cut_off(framing: bytes) -> None:
    @on_loop
    async def run() -> None:
        with patch.object(protocol, "BODY_FRAMING", 1000):
            async with on_socket() as (_, port):
                reader, writer = await connect(port)
                writer.write(chunked(b"").replace(b"host: x", b"expect: 100-continue"))
                assert await code_of(reader) == 100
                writer.write(framing)
                with suppress(ConnectionResetError):
                    assert b"HTTP/1.1 20" not in await asyncio.wait_for(reader.read(), 60)
                writer.close()

    run()


@on_loop
async def test_trailers_are_read_and_forgotten() -> None:
    async with on_socket() as (_, port):
        reader, writer = await connect(port)
        writer.write(chunked(b"2\r\n{}\r\n0\r\nauthorization: Bearer x\r\n\r\n") + HIDDEN)
        assert (await whole_answer(reader))[0] == 422  # an object without a name
        assert await code_of(reader) == 200
        writer.close()


@on_loop
async def test_requests_that_come_together_are_answered_in_their_order() -> None:
    async with on_socket() as (_, port):
        reader, writer = await connect(port)
        writer.write(b"".join(get(f"/nothing{number}") + get("/version") for number in range(50)))
        codes = [(await whole_answer(reader))[0] for _ in range(100)]
        assert codes == [404, 200] * 50
        writer.close()


@on_loop
async def test_requests_behind_one_that_is_not_answered_are_not_parsed() -> None:
    """A watch never ends: the hundred requests that came with it wait as bytes, whatever ends the heads of both."""
    begun = 0

    class Counting(protocol.Protocol):
        def on_message_begin(self) -> None:
            nonlocal begun
            begun += 1
            super().on_message_begin()

    with patch.object(listener, "Protocol", Counting):
        async with on_socket() as (_, port):
            reader, writer = await connect(port)
            writer.write(get(f"{CLAIMS}?watch=true") + get("/version") * 100)
            await reader.readuntil(b"\r\n\r\n")
            writer.write(get("/version") * 100)
            await asked(port, get("/version"))  # this one came last
            assert begun == 2
            writer.close()


@on_loop
async def test_a_request_behind_a_body_is_answered_when_its_turn_comes() -> None:
    async with on_socket() as (_, port):
        reader, writer = await connect(port)
        post = f"POST {CLAIMS} HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{{}}".encode()
        sent = (post + HIDDEN + chunked(b"2\r\n{}\r\n0\r\n\r\n") + HIDDEN) * 20
        for at in range(0, len(sent), 97):  # pieces that end anywhere
            writer.write(sent[at : at + 97])
            await asyncio.sleep(0)
        codes = [(await whole_answer(reader))[0] for _ in range(80)]
        assert codes == [422, 200] * 40
        writer.close()


@on_loop
async def test_connections_that_end_together_take_turns_and_give_their_places_back_at_once() -> None:
    turns, counted, state = Turns(1), MagicMock(), ServerState()
    async with serving() as api:
        config = uvicorn.Config(Application(api.server), lifespan="off", log_config=None)
        made = [protocol.Protocol(config, state, {}) for _ in range(10)]
        for each in made:
            each.open_connections, each.turns = counted, turns
            each.connection_made(MagicMock())
        for each in made:
            each.connection_lost(None)
        assert (counted.leave.call_count, len(state.connections)) == (10, 9)
        while state.connections:  # one in each turn of the loop
            before = len(state.connections)
            await asyncio.sleep(0)
            assert len(state.connections) == before - 1


@on_loop
async def test_a_queue_of_requests_on_one_connection_does_not_come_before_others() -> None:
    """One address sends a hundred requests on each of ten connections. Another address asks once, and waits for few."""
    answered = 0

    async def listen(reader: asyncio.StreamReader) -> None:
        nonlocal answered
        while True:
            await whole_answer(reader)
            answered += 1

    async with on_socket() as (_, port):
        many = [await connect(port, source="127.0.0.2") for _ in range(10)]
        reader, writer = await connect(port)
        for _, each in many:
            each.write(get("/version") * 100)
        listening = [asyncio.create_task(listen(each)) for each, _ in many]
        writer.write(get("/version"))
        await whole_answer(reader)
        assert answered < 200
        for task in listening:
            task.cancel()
        await asyncio.gather(*listening, return_exceptions=True)
        for _, each in [*many, (reader, writer)]:
            each.close()
