"""Tokens of service accounts: asked for once, renewed in time, asked for again when they are not believed."""

from __future__ import annotations

import asyncio

from drakit.api.exchange import Request, Response
from drakit.apiserver import Settings, build_server
from drakit.base.clock import FakeClock
from drakit.client import SERVICE_ACCOUNTS, Client, InProcess, Transport
from drakit.client.accounts import SECONDS, AccountToken
from drakit.store import MemoryStore
from tests.client.servers import on_loop


class Counted:
    in_process = True
    page_size = 0

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.asked = 0

    async def handle(self, request: Request) -> Response:
        self.asked += request.path.endswith("/token")
        return await self._inner.handle(request)

    async def close(self) -> None:
        return


@on_loop
async def test_a_token_is_asked_for_once_and_again_before_it_runs_out() -> None:
    clock = FakeClock()
    async with MemoryStore(clock=clock) as store:
        line = Counted(InProcess(await build_server(store, clock=clock, settings=Settings())))
        client = Client(line, clock=clock)
        await client.create(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a", "namespace": "kube-system"}}
        )
        token = AccountToken(client, "kube-system", "a")
        first, same = await asyncio.gather(token.headers(), token.headers())
        assert first == same
        assert first["authorization"].startswith("Bearer ")
        clock.advance(SECONDS * 0.79)
        assert (await token.headers(), line.asked) == (first, 1)
        clock.advance(SECONDS * 0.02)
        assert await token.headers() != first
        assert line.asked == 2
        assert token.refused()
        await token.headers()
        assert line.asked == 3
        assert await token.certificate() is None


@on_loop
async def test_an_account_that_is_not_there_is_made() -> None:
    clock = FakeClock()
    async with MemoryStore(clock=clock) as store:
        line = Counted(InProcess(await build_server(store, clock=clock, settings=Settings())))
        client = Client(line, clock=clock)
        assert await AccountToken(client, "kube-system", "new").headers()
        assert await client.find(SERVICE_ACCOUNTS, "new", namespace="kube-system") is not None
        assert line.asked == 2
