"""Who has no right at all costs next to nothing, and keeps nobody out."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress

import pytest
from prometheus_client import Metric

from drakit.api.exchange import User
from drakit.apiserver import Limits, Settings
from drakit.apiserver.auth.authorization import Attributes
from drakit.apiserver.auth.rbac.authorizer import RoleBased
from drakit.apiserver.auth.rbac.policy import RolePolicy
from drakit.apiserver.http.connections import ConnectionLimits
from drakit.apiserver.http.protocol import HEADER_BYTES, HEADERS, URL_BYTES
from tests.apiserver.auth.people import guarded
from tests.apiserver.calls import CLAIMS, on_loop
from tests.attacks.sockets import asked, code_of, connect, get, on_socket, whole_answer

REFUSING = Settings(modes=("Node", "RBAC"))


@on_loop
async def test_a_refused_path_makes_no_series() -> None:
    async with guarded() as api:
        await api.get("/metrics")
        before = series(api.server.registry.collect())
        for number in range(50):
            await api.get(f"/apis/g{number}.example.com/v1/namespaces/n{number}/things{number}")
            await api.get(f"/api/v1/namespaces/default/pods/a/sub{number}")
            await api.send(f"M{number}", CLAIMS)
        assert (await api.get(CLAIMS)).code == 403
        assert series(api.server.registry.collect()) - before < 100


def series(metrics: Iterable[Metric]) -> int:
    return sum(len(metric.samples) for metric in metrics)


def test_decisions_are_remembered_by_bytes_and_never_those_for_strangers() -> None:
    roles = RoleBased(RolePolicy())
    somebody, nobody = User(name="ann"), User(name="system:anonymous")
    for user, path, remembered in ((nobody, "/a", 0), (somebody, "/" + "a" * 5000, 0), (somebody, "/a", 1)):
        roles.decide(Attributes(user=user, verb="get", path=path))
        assert len(roles._results) == remembered


@on_loop
async def test_a_body_is_not_read_before_its_sender_may_send_it() -> None:
    async with on_socket(REFUSING) as (api, port):
        for headers in (
            "content-length: 3000000",
            "transfer-encoding: chunked",
            "content-length: 9\r\nauthorization: Bearer x",
        ):
            head = f"POST {CLAIMS} HTTP/1.1\r\nhost: x\r\n{headers}\r\n\r\n".encode()
            # No byte of the body is ever sent: the answer must not wait for it.
            assert await asyncio.wait_for(asked(port, head), 60) in (401, 403)
        assert api.server._shares.bodies.used == 0


@on_loop
async def test_headers_are_bounded_by_number_and_by_bytes() -> None:
    many = get("/healthz", *["a: b"] * (HEADERS + 1))
    large = get("/healthz", *[f"a{n}: {'x' * 4000}" for n in range(HEADER_BYTES // 4000 + 5)])
    long = get("/healthz?" + "x" * URL_BYTES + "y" * 20_000)
    async with on_socket() as (_, port):
        assert await asked(port, get("/healthz", *["a: b"] * (HEADERS - 10))) == 200
        for request, code in ((many, 431), (large, 431), (long, 414)):
            assert await asked(port, request) == code
        assert await asked(port, get("/healthz")) == 200


@on_loop
async def test_idle_connections_make_room_for_others() -> None:
    async with on_socket(limits=ConnectionLimits(total=20, per_address=8)) as (_, port):
        idle = [await connect(port, source="127.0.0.2") for _ in range(40)]
        assert await asked(port, get("/healthz"), source="127.0.0.2") == 200
        assert await asked(port, get("/healthz")) == 200
        for _, writer in idle:
            writer.close()


@on_loop
async def test_busy_connections_are_bounded_per_address_and_refusals_are_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    watch = get(f"{CLAIMS}?watch=true")
    with caplog.at_level(logging.WARNING):
        async with on_socket(limits=ConnectionLimits(total=20, per_address=3)) as (_, port):
            busy = [await connect(port, source="127.0.0.2") for _ in range(3)]
            for reader, writer in busy:
                writer.write(watch)
                assert await code_of(reader) == 200
            for _ in range(5):
                reader, writer = await connect(port, source="127.0.0.2")
                assert await reader.read() == b""
                writer.close()
            assert await asked(port, get("/healthz")) == 200
            for _, writer in busy:
                writer.close()
    assert sum("too many connections" in record.message for record in caplog.records) == 1


@on_loop
async def test_a_connection_that_ends_gives_its_place_back() -> None:
    async with on_socket(limits=ConnectionLimits(total=4, per_address=2)) as (_, port):
        for _ in range(10):
            assert await asked(port, get("/healthz", "connection: close")) == 200


@on_loop
async def test_a_long_body_that_is_refused_is_not_read_and_its_sender_gets_the_answer() -> None:
    body = b"x" * 2_900_000
    async with on_socket(REFUSING) as (_, port):
        reader, writer = await connect(port)
        writer.write(f"POST {CLAIMS} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 403")
        assert b"connection: close" in head
        with suppress(ConnectionError):
            await reader.read()  # the answer, and then the end of the connection
        writer.close()


@on_loop
async def test_a_short_body_that_is_refused_leaves_the_connection_usable() -> None:
    async with on_socket(REFUSING) as (_, port):
        reader, writer = await connect(port)
        for _ in range(2):
            writer.write(f"POST {CLAIMS} HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n".encode() + b"x" * 9)
            assert (await whole_answer(reader))[0] == 403
        writer.close()


@on_loop
async def test_a_body_counts_until_its_sender_has_gone() -> None:
    async with on_socket() as (api, port):
        bodies = api.server._shares.bodies
        senders = [await connect(port) for _ in range(5)]
        for _, writer in senders:
            writer.write(f"POST {CLAIMS} HTTP/1.1\r\nhost: x\r\ncontent-length: 2000\r\n\r\n".encode() + b"x" * 1000)
        while bodies.used < 5000:
            assert await asked(port, get("/healthz")) == 200
        for _, writer in senders:
            writer.close()
        while bodies.used:
            assert await asked(port, get("/healthz")) == 200


@on_loop
async def test_health_is_answered_when_no_other_request_is() -> None:
    async with on_socket(Settings(limits=Limits(reading=0, writing=0))) as (_, port):
        assert await asked(port, get(CLAIMS)) == 429
        for path in ("/healthz", "/livez", "/readyz", "/version"):
            assert await asked(port, get(path)) == 200


def test_the_process_may_open_as_many_files_as_it_is_allowed_to() -> None:
    """In a process of its own, which is allowed 900, and begins with 300. Half of what is left is for one address."""
    text = """
import resource
from drakit.apiserver.http.connections import ConnectionLimits, raise_file_limit
resource.setrlimit(resource.RLIMIT_NOFILE, (300, 900))
files = raise_file_limit()
limits = ConnectionLimits().within(files)
print(files, *resource.getrlimit(resource.RLIMIT_NOFILE), limits.total, limits.per_address)
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["900", "900", "900", "388", "194"]
