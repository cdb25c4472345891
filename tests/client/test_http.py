"""Over sockets: connections, security, and servers that die at the worst moment."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from drakit.api.exchange import User
from drakit.apiserver import Settings
from drakit.apiserver.auth.authentication import StaticTokens
from drakit.apiserver.http.listener import Listener, Security, bind_unix
from drakit.base.clock import FakeClock
from drakit.base.errors import DecodeError
from drakit.client import (
    CLAIMS,
    CONFIG_MAPS,
    PODS,
    Access,
    AlreadyExists,
    Answered,
    Certificate,
    Client,
    Conflict,
    ConnectionFailed,
    Files,
    Fixed,
    NotFound,
    RequestTimeout,
    ServerUnavailable,
    TooManyRequests,
    Trust,
    Unauthorized,
    bearer,
)
from drakit.client.failures import decode_status, failed
from drakit.client.transport.http import Http
from tests.builders.objects import claim_to_send
from tests.client.servers import a_server, config_map, listening, on_loop, pki, turns, until

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter, bytes], Awaitable[bool]]


class Script:
    """A bare HTTP server: `answer` writes to the connection and says whether to keep it."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.requests: list[bytes] = []
        self.connections = 0
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next((int(line[15:]) for line in head.lower().split(b"\r\n")
                               if line.startswith(b"content-length:")), 0)  # fmt: skip
                await reader.readexactly(length)
                self.requests.append(head)
                if not await self.answer(reader, writer, head):
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()


@asynccontextmanager
async def scripted(answer: Answer, **options: Any) -> AsyncIterator[tuple[Script, Client]]:
    script = Script(answer)
    server = await asyncio.start_server(script.serve, "127.0.0.1", 0)
    script.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        access = Access(server=script.url, credentials=Fixed())
        async with Client(Http(access, **options), clock=FakeClock()) as client:
            yield script, client
    finally:
        server.close()
        await server.wait_closed()


def reply(body: Any, code: int = 200, **headers: str) -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {code} X", "content-type: application/json", f"content-length: {len(data)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def stored(name: str) -> dict[str, Any]:
    return {**config_map(name), "metadata": {"name": name, "namespace": "default", "resourceVersion": "7"}}


@on_loop
async def test_connections_are_kept_and_used_again() -> None:
    async def answer(_: Any, writer: asyncio.StreamWriter, __: bytes) -> bool:
        writer.write(reply(stored("a")))
        return True

    async with scripted(answer) as (script, client):
        for _ in range(5):
            await client.get(CONFIG_MAPS, "a", namespace="default")
        assert (len(script.requests), script.connections) == (5, 1)


@on_loop
async def test_answers_may_be_compressed() -> None:
    async def answer(_: Any, writer: asyncio.StreamWriter, head: bytes) -> bool:
        assert b"accept-encoding: gzip\r\n" in head.lower()
        writer.write(reply(gzip.compress(json.dumps(stored("small")).encode()), content_encoding="gzip"))
        return True

    async with scripted(answer) as (_, client):
        assert (await client.get(CONFIG_MAPS, "small", namespace="default")).view.metadata.name == "small"


@on_loop
async def test_a_read_is_sent_again_when_a_kept_connection_has_gone() -> None:
    async def answer(_: Any, writer: asyncio.StreamWriter, __: bytes) -> bool:
        writer.write(reply(stored("a")))
        return False

    async with scripted(answer) as (script, client):
        for _ in range(3):
            await client.get(CONFIG_MAPS, "a", namespace="default")
            await turns()
        assert len(script.requests) == 3


@on_loop
async def test_a_server_that_is_gone_leaves_its_requests_to_the_others() -> None:
    """Reads and writes alike: what never reached a server may be sent to another. What may have is not sent again."""
    breaking = False

    async def answer(_: Any, writer: asyncio.StreamWriter, __: bytes) -> bool:
        if not breaking:
            writer.write(reply(stored("a")))
        return not breaking

    async with scripted(answer) as (one, _), scripted(answer) as (other, _):
        gone = "http://127.0.0.1:1"
        access = Access(server=gone, others=(one.url, other.url), credentials=Fixed())
        async with Client(Http(access), clock=FakeClock()) as client:
            await client.create(config_map("a"))
            await client.get(CONFIG_MAPS, "a", namespace="default")
            assert (len(one.requests), len(other.requests)) == (2, 0)
            breaking = True
            with pytest.raises(ConnectionFailed):
                await client.create(config_map("a"))
            breaking = False
            await client.get(CONFIG_MAPS, "a", namespace="default")
            assert (len(one.requests), len(other.requests)) == (3, 1)


@on_loop
async def test_a_server_that_does_not_reach_its_store_leaves_reads_to_the_others() -> None:
    """It refuses, or answers from memory and says so. A write that it refused is the caller's to send again."""
    marks: dict[str, dict[str, Any]] = {"one": {"age": "7"}, "other": {}}

    async def from_memory(_: Any, writer: asyncio.StreamWriter, __: bytes) -> bool:
        writer.write(reply(stored("a"), **marks["one"]))
        return True

    async def answer(_: Any, writer: asyncio.StreamWriter, __: bytes) -> bool:
        writer.write(reply(stored("b"), **marks["other"]))
        return True

    async def refuse(_: Any, writer: asyncio.StreamWriter, __: bytes) -> bool:
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "code": 503,
            "reason": "ServiceUnavailable",
        }
        writer.write(reply(status, 503))
        return True

    async with scripted(from_memory) as (one, _), scripted(answer) as (other, _), scripted(refuse) as (third, _):
        access = Access(server=one.url, others=(other.url,), credentials=Fixed())
        async with Client(Http(access), clock=FakeClock()) as client:
            assert (await client.get(CONFIG_MAPS, "a", namespace="default")).view.metadata.name == "b"
            await client.get(CONFIG_MAPS, "a", namespace="default")
            assert (len(one.requests), len(other.requests)) == (1, 2)
            marks["other"] = {"age": "9"}
            # Where nobody knows better, what one remembers is the answer.
            assert (await client.get(CONFIG_MAPS, "a", namespace="default")).view.metadata.name == "a"
        access = Access(server=third.url, others=(one.url,), credentials=Fixed())
        async with Client(Http(access), clock=FakeClock()) as client:
            with pytest.raises(ServerUnavailable):
                await client.create(config_map("a"))
            await client.create(config_map("a"))
            assert len(third.requests) == 1


@on_loop
async def test_a_request_that_crosses_the_end_of_its_connection_is_sent_again() -> None:
    """A server that stops says 408 on connections that wait: nothing was done, so even a write may be repeated."""
    stopping = True

    async def answer(_: Any, writer: asyncio.StreamWriter, head: bytes) -> bool:
        if stopping and head.startswith(b"POST"):
            writer.write(b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
            return False
        writer.write(reply(stored("a")))
        return True

    async def well(_: Any, writer: asyncio.StreamWriter, __: bytes) -> bool:
        writer.write(reply(stored("a")))
        return True

    async with scripted(answer) as (one, _), scripted(well) as (other, _):
        access = Access(server=one.url, others=(other.url,), credentials=Fixed())
        async with Client(Http(access), clock=FakeClock()) as client:
            await client.get(CONFIG_MAPS, "a", namespace="default")
            await client.create(config_map("a"))
            assert (len(one.requests), len(other.requests)) == (2, 1)


@on_loop
async def test_a_server_that_does_not_answer_in_time_is_left_for_another() -> None:
    over = asyncio.Event()

    async def silent(_: Any, __: asyncio.StreamWriter, ___: bytes) -> bool:
        await over.wait()
        return False

    async def well(_: Any, writer: asyncio.StreamWriter, __: bytes) -> bool:
        writer.write(reply(stored("a")))
        return True

    async with scripted(silent) as (one, _), scripted(well) as (other, _):
        http = Http(Access(server=one.url, others=(other.url,), credentials=Fixed()), timeout=0.2)
        async with Client(http, clock=FakeClock()) as client:
            with pytest.raises(RequestTimeout):
                await client.create(config_map("a"))
            http._timeout = aiohttp.ClientTimeout(total=60)
            await client.create(config_map("a"))
            assert len(other.requests) == 1
        over.set()


WRITES: dict[str, Callable[[Client], Awaitable[Any]]] = {
    "create": lambda client: client.create(config_map("a")),
    "update": lambda client: client.update(config_map("a")),
    "patch": lambda client: client.patch_named(CONFIG_MAPS, "a", {"data": {}}, namespace="default"),
    "delete": lambda client: client.delete(CONFIG_MAPS, "a", namespace="default"),
}


@pytest.mark.parametrize("method", WRITES)
@on_loop
async def test_a_write_is_sent_once_even_if_no_answer_comes(method: str) -> None:
    dying = False

    async def answer(_: Any, writer: asyncio.StreamWriter, __: bytes) -> bool:
        if dying:
            return False
        writer.write(reply(stored("a")))
        return True

    async with scripted(answer) as (script, client):
        await client.get(CONFIG_MAPS, "a", namespace="default")  # a kept connection
        dying = True
        with pytest.raises(ConnectionFailed) as caught:
            await WRITES[method](client)
        assert caught.value.sent
        assert len(script.requests) == 2


@on_loop
async def test_a_server_that_is_not_there_was_sent_nothing() -> None:
    async with Client(Http(Access(server="http://127.0.0.1:1", credentials=Fixed()))) as client:
        with pytest.raises(ConnectionFailed, match="Cannot connect") as caught:
            await client.create(config_map("a"))
        assert not caught.value.sent


@on_loop
async def test_an_answer_that_breaks_off_is_no_answer() -> None:
    async def answer(_: Any, writer: asyncio.StreamWriter, __: bytes) -> bool:
        writer.write(reply(stored("a"))[:-20])
        return False

    async with scripted(answer) as (script, client):
        with pytest.raises(ConnectionFailed):
            await client.get(CONFIG_MAPS, "a", namespace="default")
        assert len(script.requests) == 2  # a read is tried twice, not for ever


@on_loop
async def test_a_server_that_never_answers_is_given_up_on() -> None:
    async def answer(reader: asyncio.StreamReader, _: Any, __: bytes) -> bool:
        await reader.read()
        return False

    async with scripted(answer, timeout=0.05) as (_, client):
        with pytest.raises(RequestTimeout, match="no answer in time"):
            await client.get(CONFIG_MAPS, "a", namespace="default")


@on_loop
async def test_pages_that_are_no_status_are_told_as_they_are() -> None:
    async def answer(_: Any, writer: asyncio.StreamWriter, __: bytes) -> bool:
        writer.write(reply(b"<html>bad gateway</html>", 502))
        return True

    async with scripted(answer) as (_, client):
        with pytest.raises(ServerUnavailable, match="bad gateway"):
            await client.get(CONFIG_MAPS, "a", namespace="default")


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"reason": "AlreadyExists", "code": 409, "details": None}, AlreadyExists),
        ({"reason": "Conflict", "code": 409, "details": {"causes": None}, "metadata": None}, Conflict),
        ({"reason": "NotFound", "code": 404, "details": {"name": "x"}, "status": "Failure", "metadata": {}}, NotFound),
    ],
)
def test_a_status_counts_also_without_what_says_nothing(told: dict[str, Any], expected: type[Answered]) -> None:
    found = failed(decode_status(json.dumps({"kind": "Status", "message": "so", **told}).encode()))
    assert (type(found), str(found)) == (expected, "so")


@on_loop
async def test_a_page_in_place_of_a_document_is_no_answer_of_an_api_server() -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes) -> bool:
        writer.write(reply(b"<html>"))
        return bool(head)

    async with scripted(answer) as (_, client):
        with pytest.raises(DecodeError, match=r"the server's answer is no JSON object .*<html>"):
            await client.document("/version")


@on_loop
async def test_a_busy_server_is_asked_again_when_it_says_so() -> None:
    busy = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 429,
            "reason": "TooManyRequests", "message": "busy"}  # fmt: skip
    times = 2

    async def answer(_: Any, writer: asyncio.StreamWriter, __: bytes) -> bool:
        nonlocal times
        times -= 1
        writer.write(reply(stored("a"), 201) if times < 0 else reply(busy, 429, retry_after="5"))
        return True

    async with scripted(answer) as (script, client):
        clock = client.clock
        assert isinstance(clock, FakeClock)
        creating = asyncio.ensure_future(client.create(config_map("a")))
        for asked in (1, 2):
            await until(lambda: clock.next_deadline() is not None, most=1_000_000)
            assert len(script.requests) == asked
            clock.advance(5)
        assert (await creating).view.metadata.name == "a"
        times = 100
        trying = asyncio.ensure_future(client.create(config_map("a")))
        while not trying.done():
            clock.advance(5)
            await asyncio.sleep(0)
        with pytest.raises(TooManyRequests) as caught:
            await trying
        assert caught.value.retry_after == 5


@on_loop
async def test_a_watch_that_breaks_in_the_middle_of_an_event_says_so() -> None:
    line = json.dumps({"type": "ADDED", "object": stored("a")}).encode() + b"\n"

    async def answer(_: Any, writer: asyncio.StreamWriter, __: bytes) -> bool:
        body = line + line[:30]
        writer.write(b"HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n" % (len(body), body))
        await writer.drain()
        return False

    async with scripted(answer) as (_, client), client.watch(CONFIG_MAPS, since="1") as changes:
        assert (await anext(changes)).type == "ADDED"
        with pytest.raises(ConnectionFailed):
            await anext(changes)


@on_loop
async def test_events_may_come_in_any_pieces() -> None:
    lines = b"".join(
        json.dumps({"type": "ADDED", "object": {**stored(f"n{index}"), "data": {"x": "y" * 100_000}}}).encode() + b"\n"
        for index in range(3)
    )
    pieces = [lines[start : start + 70_001] for start in range(0, len(lines), 70_001)]

    async def answer(_: Any, writer: asyncio.StreamWriter, __: bytes) -> bool:
        writer.write(b"HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n")
        for piece in pieces:
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        return False

    async with scripted(answer) as (_, client):
        async with client.watch(CONFIG_MAPS, since="1") as changes:
            found = [change.object.view.metadata.name async for change in changes if change.object]
        assert found == ["n0", "n1", "n2"]


@on_loop
async def test_tls_with_a_client_certificate(tmp_path: Path) -> None:
    authority = pki(tmp_path)
    security = Security(authority.server(("127.0.0.1",)), (authority.files.certificate,))
    files = authority.client("jane", ("devs",), "jane")
    certificate = Certificate(files.certificate.read_bytes(), files.key.read_bytes())
    trust = Trust(ca=authority.files.certificate.read_bytes())
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    async with a_server(FakeClock()) as server, listening(server, security) as url:
        async with Client(Http(Access(server=url, credentials=Fixed({}, certificate), trust=trust))) as client:
            who = await client.create(review)
            assert who.document["status"]["userInfo"]["username"] == "jane"
            assert "devs" in who.document["status"]["userInfo"]["groups"]
        async with Client(Http(Access(server=url, credentials=Fixed(), trust=Trust(insecure=True)))) as client:
            who = await client.create(review)
            assert who.document["status"]["userInfo"]["username"] == "system:anonymous"
        async with Client(Http(Access(server=url, credentials=Fixed()))) as client:
            with pytest.raises(ConnectionFailed, match="certificate verify failed"):
                await client.list(PODS)


class Replaced(Fixed):
    """A client's certificate that somebody replaces now and then."""

    def __init__(self, certificate: Certificate) -> None:
        super().__init__()
        self.now = certificate

    async def certificate(self) -> Certificate | None:
        return self.now


@on_loop
async def test_a_certificate_is_replaced_as_soon_as_its_key_fits_and_no_connection_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, opened = pki(tmp_path), []
    security = Security(authority.server(("127.0.0.1",)), (authority.files.certificate,))
    trust = Trust(ca=authority.files.certificate.read_bytes())
    jane, joe = (
        Certificate(files.certificate.read_bytes(), files.key.read_bytes())
        for files in (authority.client(name, (), name) for name in ("jane", "joe"))
    )

    async def who(client: Client) -> str:
        answer = await client.create({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
        return str(answer.document["status"]["userInfo"]["username"])

    def counted(self: Http, certificate: Certificate | None) -> aiohttp.ClientSession:
        opened.append(plain(self, certificate))
        return opened[-1]

    plain = Http._open
    monkeypatch.setattr(Http, "_open", counted)
    async with a_server(FakeClock()) as server, listening(server, security) as url:
        credentials = Replaced(jane)
        async with Client(Http(Access(server=url, credentials=credentials, trust=trust))) as client:
            assert await who(client) == "jane"
            credentials.now = Certificate(joe.certificate, jane.key)
            assert await who(client) == "jane"
            credentials.now = joe
            assert await asyncio.gather(*(who(client) for _ in range(5))) == ["joe"] * 5
    assert [session.closed for session in opened] == [True, True]


@on_loop
async def test_a_token_that_is_no_longer_good_is_read_again(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    tokens = StaticTokens({"new": User(name="jane")})
    async with a_server(FakeClock(), Settings(tokens=tokens, anonymous=False)) as server, listening(server) as url:
        access = Access(server=url, credentials=Files(FakeClock(), token=token))
        async with Client(Http(access)) as client:
            with pytest.raises(Unauthorized):
                await client.list(CLAIMS)
            token.write_text("new")
            assert len(await client.list(CLAIMS)) == 0
        async with Client(Http(Access(server=url, credentials=Fixed(bearer("wrong"))))) as client:
            with pytest.raises(Unauthorized):
                await client.list(CLAIMS)


@on_loop
async def test_unix_sockets(tmp_path: Path) -> None:
    path = tmp_path / "api.sock"
    access = Access(server=f"unix://{path}", credentials=Fixed())
    async with (
        a_server(FakeClock()) as server,
        Listener(server, bind_unix(path)).running(),
        Client(Http(access)) as client,
    ):
        await client.create(claim_to_send("train"))
        assert len(await client.list(CLAIMS)) == 1


@on_loop
async def test_several_values_of_a_header_are_several_headers() -> None:
    async def answer(_: Any, writer: asyncio.StreamWriter, __: bytes) -> bool:
        writer.write(reply(stored("a")))
        return True

    async with scripted(answer) as (script, _):
        headers = {"impersonate-user": "robot", "impersonate-group": "a\nb"}
        async with Client(Http(Access(server=script.url, credentials=Fixed(), headers=headers))) as client:
            await client.get(CONFIG_MAPS, "a", namespace="default")
        head = script.requests[-1].lower()
        assert b"impersonate-group: a\r\nimpersonate-group: b\r\n" in head
        assert b"impersonate-user: robot\r\n" in head


@on_loop
async def test_watches_end_when_the_client_closes() -> None:
    async with a_server(FakeClock()) as server, listening(server) as url:
        client = Client(Http(Access(server=url, credentials=Fixed())))
        made = await client.create(claim_to_send("train"))
        async with client.watch(CLAIMS, since=made.metadata.resource_version) as changes:
            following = asyncio.ensure_future(anext(changes, None))
            await turns()
            await client.close()
            with pytest.raises(ConnectionFailed):
                await following
        with pytest.raises(ConnectionFailed, match="the client is closed"):
            await client.list(CLAIMS)
