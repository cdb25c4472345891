"""Limits: what is too much is refused, cheaply, and nothing of it stays."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any
from unittest.mock import patch

import pytest

from drakit.apiserver import Limits, Settings
from drakit.apiserver.admission.chain import Admission, AdmissionPlugin, ObjectChange
from drakit.apiserver.http import asgi
from drakit.apiserver.http.asgi import Application, warning_header
from drakit.apiserver.requests.bodies import MAX_BODY
from tests.apiserver.calls import CLAIMS, CLASSES, Api, on_loop, serving
from tests.builders.documents import claim_document, class_document


class Gate(AdmissionPlugin):
    """Holds every write until it is opened."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.full = asyncio.Event()
        self._waiting = 0

    async def admit(self, change: ObjectChange) -> None:  # noqa: ARG002
        self._waiting += 1
        if self._waiting == 2:
            self.full.set()
        await self.open.wait()


@on_loop
async def test_more_writes_than_the_bound_are_told_to_come_back() -> None:
    async with serving(Settings(limits=Limits(reading=5, writing=2))) as api:
        gate = Gate()
        api.server.context.admission = Admission([gate])
        writes = [asyncio.ensure_future(api.create(CLAIMS, claim_document(f"c{number}"))) for number in range(2)]
        await gate.full.wait()
        refused = await api.create(CLAIMS, claim_document("late"))
        assert (refused.code, refused.body["reason"]) == (429, "TooManyRequests")
        assert ("retry-after", "1") in refused.response.headers
        assert (await api.get(CLAIMS)).code == 200
        gate.open.set()
        assert [answer.code for answer in await asyncio.gather(*writes)] == [201, 201]
        assert (await api.create(CLAIMS, claim_document("late"))).code == 201


@on_loop
async def test_a_body_over_three_megabytes_is_too_large() -> None:
    async with serving() as api:
        big = class_document("gpu", "true", annotations={"a": "x" * MAX_BODY})
        assert (await api.create(CLASSES, big)).code == 413


@pytest.mark.parametrize("syntax", ["json", "yaml"])
def test_nesting_that_is_too_deep_is_a_bad_request(syntax: str) -> None:
    deep = b"[" * 90_000 + b"]" * 90_000
    body = b'{"kind":"DeviceClass","apiVersion":"resource.k8s.io/v1","spec":' + deep + b"}"

    @on_loop
    async def run() -> None:
        async with serving() as api:
            answer = await api.create(CLASSES, body, content=f"application/{syntax}")
            assert (answer.code, answer.body["reason"]) == (400, "BadRequest")

    run()


@on_loop
async def test_deep_opaque_parameters_are_refused_or_kept_and_never_an_error_of_the_server() -> None:
    async with serving() as api:
        for depth in (100, 500, 900, 2000):
            inner: Any = 1
            for _ in range(depth):
                inner = {"a": inner}
            sent = class_document(f"deep-{depth}", "true")
            text = json.dumps({**sent, "spec": "@"}).replace('"@"', _config(depth))
            answer = await api.create(CLASSES, text.encode())
            assert answer.code in (201, 400, 422), answer.body
            if answer.code == 201:
                path = f"{CLASSES}/deep-{depth}"
                assert (await api.patch(path, {"metadata": {"labels": {"a": "b"}}})).code in (200, 400)
                assert (await api.get(path)).code == 200


def _config(depth: int) -> str:
    parameters = '{"a":' * depth + "1" + "}" * depth
    return '{"config":[{"opaque":{"driver":"x.example.com","parameters":' + parameters + "}}]}"


@on_loop
async def test_an_alias_bomb_is_a_bad_request() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    async with serving() as api:
        assert (await api.create(CLASSES, "\n".join(lines).encode(), content="application/yaml")).code == 400


class Wire:
    """An ASGI connection: what the client sends, in parts, and what it gets."""

    def __init__(self, *parts: bytes, ends: bool = True) -> None:
        last = len(parts) - 1
        self._incoming = [
            {"type": "http.request", "body": part, "more_body": index < last or not ends}
            for index, part in enumerate(parts)
        ]
        self.gone = asyncio.Event()
        self.sent: list[dict[str, Any]] = []
        self.wrote = asyncio.Event()
        self.added = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        if self._incoming:
            return self._incoming.pop(0)
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.sent.append(dict(message))
        self.wrote.set()
        if b"ADDED" in message.get("body", b""):
            self.added.set()

    @property
    def code(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent[1:])


def scope(method: str, path: str, query: str = "", **headers: str) -> dict[str, Any]:
    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http", "method": method, "path": path, "query_string": query.encode(), "headers": named}


async def ask(api: Api, wire: Wire, wanted: dict[str, Any]) -> Wire:
    await Application(api.server)(wanted, wire.receive, wire.send)
    return wire


@on_loop
async def test_a_body_comes_in_parts_and_is_bounded_while_it_comes() -> None:
    body = json.dumps(claim_document("a")).encode()
    async with serving() as api:
        made = await ask(api, Wire(body[:10], body[10:]), scope("POST", CLAIMS, content_type="application/json"))
        assert made.code == 201
        told = await ask(api, Wire(b""), scope("POST", CLAIMS, content_length=str(MAX_BODY + 1)))
        assert told.code == 413
        endless = await ask(api, Wire(*[b"x" * 1_000_000] * 5), scope("POST", CLAIMS))
        assert endless.code == 413


@on_loop
async def test_a_long_answer_is_compressed_for_clients_elsewhere_and_for_no_others() -> None:
    async with serving() as api:
        big = {"metadata": {"name": "big"}, "data": {"a": "x" * 200_000}}
        await api.create("/api/v1/namespaces/default/configmaps", big)
        path = "/api/v1/namespaces/default/configmaps/big"
        far, near = {"client": ("192.0.2.7", 4711)}, {"client": ("127.0.0.1", 4711)}
        plain = (await ask(api, Wire(), {**scope("GET", path, accept_encoding="gzip"), **near})).body
        coded = await ask(api, Wire(), {**scope("GET", path, accept_encoding="br, gzip"), **far})
        headers = dict(coded.sent[0]["headers"])
        assert (headers[b"content-encoding"], headers[b"content-length"]) == (b"gzip", str(len(coded.body)).encode())
        assert gzip.decompress(coded.body) == plain
        for refusing in ("", "br", "gzip;q=0"):
            assert (await ask(api, Wire(), {**scope("GET", path, accept_encoding=refusing), **far})).body == plain
        short = await ask(api, Wire(), {**scope("GET", "/version", accept_encoding="gzip"), **far})
        assert b"content-encoding" not in dict(short.sent[0]["headers"])


@on_loop
async def test_a_client_that_leaves_in_the_middle_of_its_body_leaves_nothing() -> None:
    async with serving() as api:
        wire = Wire(b"{", ends=False)
        wire.gone.set()
        await ask(api, wire, scope("POST", CLAIMS))
        assert wire.sent == []


@on_loop
async def test_a_watch_ends_with_its_connection() -> None:
    async with serving() as api:
        wire = Wire()
        asking = asyncio.ensure_future(ask(api, wire, scope("GET", CLAIMS, "watch=1")))
        await wire.wrote.wait()
        store = api.server.context.objects.store
        assert (await store.stats()).watchers == 1
        await api.create(CLAIMS, claim_document("a"))
        await wire.added.wait()
        wire.gone.set()
        await asking
        assert (await store.stats()).watchers == 0


@on_loop
async def test_the_head_of_a_watch_holds_nothing_open() -> None:
    async with serving() as api:
        answer = await api.send("HEAD", CLAIMS, watch="true")
        assert (answer.code, answer.body["kind"]) == (405, "Status")


@on_loop
async def test_a_client_that_does_not_read_is_left_alone() -> None:
    class Stalled(Wire):
        async def send(self, message: Any) -> None:
            await super().send(message)
            if len(self.sent) > 2:
                await asyncio.Event().wait()

    async with serving() as api:
        wire = Stalled()
        with patch.object(asgi, "WRITE_SECONDS", 0.01):
            asking = asyncio.ensure_future(ask(api, wire, scope("GET", CLAIMS, "watch=1")))
            await wire.wrote.wait()
            await api.create(CLAIMS, claim_document("a"))
            await asking
        assert (await api.server.context.objects.store.stats()).watchers == 0


@on_loop
async def test_a_body_that_stalls_is_given_up() -> None:
    async with serving() as api:
        wire = Wire(b"{", ends=False)
        with patch.object(asgi, "BODY_SECONDS", 0.01):
            await ask(api, wire, scope("POST", CLAIMS))
        assert wire.code == 504


@on_loop
async def test_a_request_that_takes_too_long_is_given_up() -> None:
    async with serving() as api:
        api.server.context.admission = Admission([Gate()])
        body = json.dumps(claim_document("a")).encode()
        with patch.object(asgi, "REQUEST_SECONDS", 0.01):
            wire = await ask(api, Wire(body), scope("POST", CLAIMS, content_type="application/json"))
        assert (wire.code, json.loads(wire.body)["reason"]) == (504, "Timeout")
        assert (await api.get(f"{CLAIMS}/a")).code == 404


@on_loop
async def test_watches_end_when_the_server_stops() -> None:
    async with serving() as api:
        application, wire = Application(api.server), Wire()
        asking = asyncio.ensure_future(application(scope("GET", CLAIMS, "watch=1"), wire.receive, wire.send))
        await wire.wrote.wait()
        application.drain()
        await asking
        assert (await api.server.context.objects.store.stats()).watchers == 0


def test_a_warning_is_one_line_with_its_quotes_escaped() -> None:
    assert warning_header('unknown field "a\\b"\n') == b'299 - "unknown field \\"a\\\\b\\" "'
