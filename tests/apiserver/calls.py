"""A server without sockets, and a short way to ask it things."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import msgspec

from drakit.api.exchange import EventStream, Request, Response, User, WatchEvent
from drakit.apiserver import Server, Settings, build_server
from drakit.base.clock import FakeClock
from drakit.store import MemoryStore, Retention
from tests.builders.documents import (
    Plain,
    document,
)
from tests.builders.loop import on_loop as on_loop

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
ALL_CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"
CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
PODS = "/api/v1/namespaces/default/pods"
NAMESPACES = "/api/v1/namespaces"
MERGE = "application/merge-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


class Answer(msgspec.Struct, frozen=True):
    code: int
    body: Any
    response: Response

    @property
    def message(self) -> str:
        return str(self.body["message"])

    @property
    def version(self) -> str:
        return str(self.body["metadata"]["resourceVersion"])

    @property
    def names(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.body["items"]]


class Api:
    """Sends requests to a server in this process."""

    def __init__(self, server: Server, clock: FakeClock) -> None:
        self.server = server
        self.clock = clock

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        accept: str = "",
        content: str = "application/json",
        user: User | None = None,
        headers: Mapping[str, str] | None = None,
        **query: str,
    ) -> Answer:
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        sent = {"accept": accept, "content-type": content if data else "", **(headers or {})}
        request = Request(
            method=method, path=path, query=tuple(query.items()), headers=sent, body=data, user=user
        )  # fmt: skip
        response = await self.server.handle(request)
        text = response.content.encode()
        try:
            decoded = json.loads(text)
        except ValueError:
            decoded = text.decode(errors="replace")
        return Answer(response.code, decoded, response)

    async def get(self, path: str, **options: Any) -> Answer:
        return await self.send("GET", path, **options)

    async def create(self, path: str, body: Any, **options: Any) -> Answer:
        return await self.send("POST", path, body, **options)

    async def update(self, path: str, body: Any, **options: Any) -> Answer:
        return await self.send("PUT", path, body, **options)

    async def patch(self, path: str, body: Any, *, content: str = MERGE, **options: Any) -> Answer:
        return await self.send("PATCH", path, body, content=content, **options)

    async def delete(self, path: str, body: Any = None, **options: Any) -> Answer:
        return await self.send("DELETE", path, body, **options)

    async def watch(self, path: str, **query: str) -> EventStream:
        request = Request(method="GET", path=path, query=(("watch", "true"), *query.items()))
        content = (await self.server.handle(request)).content
        if not isinstance(content, EventStream):
            raise AssertionError(content.encode())
        return content


async def take(events: AsyncIterator[WatchEvent], count: int) -> list[WatchEvent]:
    return [await anext(events) for _ in range(count)]


def told(events: list[WatchEvent]) -> list[tuple[str, str]]:
    """Type and name of each event."""
    return [(event.type, event.object.document["metadata"]["name"] if event.object else "") for event in events]


@asynccontextmanager
async def serving(settings: Settings | None = None, *, history: int | None = None) -> AsyncIterator[Api]:
    """A server with an empty store and a clock that stands still."""
    clock = FakeClock()
    retention = Retention(events=history) if history is not None else None
    async with MemoryStore(clock=clock, retention=retention) as store:
        settings = settings or Settings(random=Random(7))
        async with await build_server(store, clock=clock, settings=settings) as server:
            yield Api(server, clock)


def namespace(name: str) -> Plain:
    return document("Namespace", name, api="v1")
