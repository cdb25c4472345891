"""A webhook on a socket of this machine, as good or as bad as a test wants it."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from tests.apiserver.admission.objects import MUTATING, VALIDATING
from tests.apiserver.calls import Api
from tests.builders.documents import Plain

Respond = Callable[[Plain], Plain | bytes | None]
Before = Callable[[], Awaitable[object]]
ALLOW: Plain = {"allowed": True}


class Hook:
    """`respond` makes an answer of a request: a review's response, raw bytes, or nothing but silence."""

    def __init__(self, respond: Respond, *, tls: bool = False, before: Before | None = None) -> None:
        self._respond = respond
        self._before = before
        self._scheme = "https" if tls else "http"
        self.requests: list[Plain] = []
        self.lines: list[str] = []
        self.url = ""
        self.closed = asyncio.Event()

    def listening(self, port: int) -> None:
        self.url = f"{self._scheme}://127.0.0.1:{port}/check"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = next(int(line[15:]) for line in head.splitlines() if line.lower().startswith("content-length:"))
            review = json.loads(await reader.readexactly(length))
            self.lines.append(head.splitlines()[0])
            self.requests.append(review["request"])
            if self._before is not None:
                await self._before()
            await self._answer(review, reader, writer)
        finally:
            writer.close()
            self.closed.set()

    async def _answer(self, review: Plain, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made = self._respond(review["request"])
        if made is None:
            await reader.read()  # until the other side has enough
            return
        if isinstance(made, bytes):
            writer.write(made)
        else:
            writer.write(ok({**review, "response": {"uid": review["request"]["uid"], **made}}))
        await writer.drain()


def ok(document: Any) -> bytes:
    body = json.dumps(document).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


@asynccontextmanager
async def listening(
    respond: Respond, context: ssl.SSLContext | None = None, *, before: Before | None = None
) -> AsyncIterator[Hook]:
    hook = Hook(respond, tls=context is not None, before=before)
    server = await asyncio.start_server(hook.serve, "127.0.0.1", 0, ssl=context)
    hook.listening(server.sockets[0].getsockname()[1])
    try:
        yield hook
    finally:
        server.close()


def webhook(url: str, *, name: str = "check.example.com", **fields: Any) -> Plain:
    rule = {
        "apiGroups": ["resource.k8s.io"], "apiVersions": ["v1"], "operations": ["*"],
        "resources": ["resourceclaims", "deviceclasses"],
    }  # fmt: skip
    return {
        "name": name,
        "clientConfig": {"url": url},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **fields,
    }


async def register(api: Api, *webhooks: Plain, mutating: bool = False, name: str = "hooks") -> None:
    kind = "MutatingWebhookConfiguration" if mutating else "ValidatingWebhookConfiguration"
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "webhooks": list(webhooks),
    }
    answer = await api.create(MUTATING if mutating else VALIDATING, configuration)
    assert answer.code == 201, answer.body


def patch(*operations: Plain) -> Plain:
    text = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": text}


def labelling(name: str) -> Respond:
    """Adds a label that counts how often it was asked."""

    def respond(request: Plain) -> Plain:
        labels = (request["object"]["metadata"].get("labels")) or {}
        seen = int(labels.get(name, "0")) + 1
        return patch({"op": "add", "path": "/metadata/labels", "value": {**labels, name: str(seen)}})

    return respond
