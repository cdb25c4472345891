"""Requests that read differently to two readers: refused, so that nothing comes in behind them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from drakit.api.exchange import User
from drakit.apiserver.auth.authentication import StaticTokens
from drakit.apiserver.http.listener import Listener, bind
from tests.apiserver.auth.people import guarded
from tests.apiserver.calls import on_loop

TOKENS = StaticTokens({"of-alice": User(name="alice"), "of-root": User(name="root", groups=("system:masters",))})
WHO = b"POST /apis/authentication.k8s.io/v1/selfsubjectreviews HTTP/1.1\r\nhost: x\r\n"
HIDDEN = b"GET /metrics HTTP/1.1\r\nhost: x\r\nauthorization: Bearer of-root\r\n\r\n"
ALICE = b"authorization: Bearer of-alice\r\n"


@asynccontextmanager
async def listening() -> AsyncIterator[int]:
    bound = bind("127.0.0.1", 0)
    async with guarded(tokens=TOKENS) as api, Listener(api.server, bound, None).running():
        yield int(bound.getsockname()[1])


async def everything(port: int, data: bytes) -> bytes:
    """All that comes back on a connection that the client closes after what it has sent."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    writer.write_eof()
    async with asyncio.timeout(20):
        answered = await reader.read()
    writer.close()
    return answered


def codes(answered: bytes) -> list[int]:
    return [int(code) for code in re.findall(rb"HTTP/1\.1 (\d{3})", answered)]


AMBIGUOUS = {
    "length and chunks": WHO + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "chunks and length": WHO + b"transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n" + HIDDEN,
    "two lengths": WHO + b"content-length: 0\r\ncontent-length: %d\r\n\r\n" % len(HIDDEN) + HIDDEN,
    "another coding": WHO + b"transfer-encoding: xchunked\r\ncontent-length: 0\r\n\r\n" + HIDDEN,
    "space before the colon": WHO + b"transfer-encoding : chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "folded header": WHO + b"authorization: Bearer\r\n of-root\r\ncontent-length: 0\r\n\r\n",
    "nul in a header": WHO + b"authorization: Bearer of-ro\0ot\r\ncontent-length: 0\r\n\r\n",
    "bare line feeds": WHO.replace(b"\r\n", b"\n") + b"authorization: Bearer of-alice\ncontent-length: 0\n\n",
    "negative length": WHO + b"content-length: -1\r\n\r\n",
    "signed length": WHO + b"content-length: +0\r\n\r\n",
    "hexadecimal length": WHO + b"content-length: 0x0\r\n\r\n",
    "tunnel": b"CONNECT elsewhere:80 HTTP/1.1\r\nhost: x\r\n\r\n" + HIDDEN,
    "another protocol": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
}


@pytest.mark.parametrize("data", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_a_request_that_can_be_read_in_two_ways_is_read_in_none(data: bytes) -> None:
    @on_loop
    async def run() -> None:
        async with listening() as port:
            assert codes(await everything(port, data)) == [400]

    run()


async def asked_as(port: int, headers: bytes) -> tuple[int, str]:
    """The code, and who the server takes the client for."""
    answered = await everything(port, WHO + headers + b"content-length: 0\r\nconnection: close\r\n\r\n")
    code = codes(answered)[0]
    body = json.loads(answered.partition(b"\r\n\r\n")[2])
    return code, body["status"]["userInfo"]["username"] if code == 201 else ""


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        (ALICE, 201),
        (ALICE + b"authorization: Bearer of-root\r\n", 401),
        (ALICE + b"IMPERSONATE-USER: root\r\n", 403),
        (ALICE + b"impersonate-group: system:masters\r\n", 400),
        (ALICE + b"impersonate-extra-: x\r\n", 400),
        (ALICE + b"impersonate_user: root\r\n", 201),
        (ALICE + b"x-remote-user: root\r\nx-remote-group: system:masters\r\n", 201),
        (ALICE + b"x-forwarded-user: root\r\nx-forwarded-client-cert: root\r\n", 201),
        (ALICE + b"x-http-method-override: DELETE\r\n", 201),
        (b"authorization: Bearer of-alice of-root\r\n", 401),
        (b"authorization: Token of-root\r\n", 403),
        (b"x-remote-user: root\r\nx-remote-group: system:masters\r\n", 403),
        (b"impersonate-user: root\r\n", 403),
    ],
)
def test_nobody_becomes_somebody_else_by_a_header(headers: bytes, code: int) -> None:
    @on_loop
    async def run() -> None:
        async with listening() as port:
            found, name = await asked_as(port, headers)
            assert found == code
            assert name in ("alice", "")

    run()


@on_loop
async def test_what_a_path_or_a_query_holds_never_becomes_a_header() -> None:
    async with listening() as port:
        for target in (
            b"/api/v1/namespaces/a%0d%0aset-cookie:x/pods/b",
            b"/api/v1/namespaces/a/pods?fieldManager=%0d%0aset-cookie:x&pretty=%0d%0aset-cookie:x",
            b"/api/v1/namespaces/a/pods?continue=%0d%0aset-cookie:x",
        ):
            request = b"GET " + target + b" HTTP/1.1\r\nhost: x\r\nauthorization: Bearer of-root\r\n\r\n"
            head = (await everything(port, request)).partition(b"\r\n\r\n")[0].lower()
            assert b"\r\nset-cookie" not in head
