"""A server ends everything that it started."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from drakit.api.exchange import EventStream, Request, Response
from drakit.apiserver import Server, Settings, build_server
from drakit.apiserver.auth.identities import ADMIN
from drakit.apiserver.serving import access
from drakit.base.errors import Unavailable
from drakit.base.gates import FeatureGates
from drakit.store import MemoryStore
from tests.apiserver.calls import ALL_CLAIMS, CLAIMS, on_loop
from tests.builders.documents import claim_document

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


def by_roles() -> Settings:
    return Settings(modes=("Node", "RBAC"), aggregate_roles=True)


async def ask(server: Server, method: str, path: str, body: object = None, *, watch: bool = False) -> Response:
    data = b"" if body is None else json.dumps(body).encode()
    query = (("watch", "true"),) if watch else ()
    headers = {"content-type": "application/json"} if data else {}
    return await server.handle(Request(method=method, path=path, query=query, headers=headers, body=data, user=ADMIN))


async def events_of(server: Server) -> list[str]:
    stream = (await ask(server, "GET", ALL_CLAIMS, watch=True)).content
    assert isinstance(stream, EventStream)
    return [event.type async for event in stream.events()]


async def use(server: Server) -> asyncio.Task[list[str]]:
    """Ask for a token, which starts to follow what tokens are bound to, and watch until the server ends that."""
    assert (await ask(server, "POST", ACCOUNTS, {"metadata": {"name": "robot"}})).code == 201
    assert (await ask(server, "POST", f"{ACCOUNTS}/robot/token", {"spec": {}})).code == 201
    watching = asyncio.create_task(events_of(server))
    assert (await ask(server, "POST", CLAIMS, claim_document("a"))).code == 201
    for _ in range(20):
        await asyncio.sleep(0)
    return watching


@pytest.mark.parametrize("make", [Settings, by_roles], ids=["always-allow", "roles"])
def test_no_task_is_left_after_a_server(make: type[Settings]) -> None:
    @on_loop
    async def run() -> None:
        before = asyncio.all_tasks()
        async with MemoryStore() as store:
            async with await build_server(store, settings=make()) as server:
                watching = await use(server)
                assert len(asyncio.all_tasks()) > len(before) + 1
                observers = server.context.objects.observers
                assert observers
            assert await watching == ["ADDED"]
            assert asyncio.all_tasks() == before
            assert observers == []
            assert (await store.stats()).watchers == 0

    run()


@on_loop
async def test_a_closed_server_answers_503_and_starts_nothing() -> None:
    async with MemoryStore() as store:
        async with await build_server(store) as server:
            pass
        await server.close()
        before = asyncio.all_tasks()
        assert (await ask(server, "GET", ALL_CLAIMS, watch=True)).code == 503
        assert asyncio.all_tasks() == before


@on_loop
async def test_the_threads_for_expressions_end_with_the_server() -> None:
    longest = " || ".join(["device.driver == 'a'"] * 400)
    body = claim_document("large")
    exactly = body["spec"]["devices"]["requests"][0]["exactly"]
    exactly["selectors"] = [{"cel": {"expression": longest}}]
    async with MemoryStore() as store:
        async with await build_server(store, settings=Settings(gates=FeatureGates.all_on())) as server:
            assert (await ask(server, "POST", CLAIMS, body)).code == 201
            started = [each for each in threading.enumerate() if each.name.startswith("drakit-selectors")]
            assert started
        for thread in started:
            thread.join(10)
            assert not thread.is_alive()


@on_loop
async def test_a_server_that_cannot_start_leaves_no_task(monkeypatch: pytest.MonkeyPatch) -> None:
    async def failing(*_: object) -> None:
        raise Unavailable("no more writes")

    monkeypatch.setattr(access, "aggregate", failing)
    async with MemoryStore() as store:
        before = asyncio.all_tasks()
        with pytest.raises(Unavailable):
            await build_server(store, settings=by_roles())
        assert asyncio.all_tasks() == before
