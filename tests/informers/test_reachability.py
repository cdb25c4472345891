"""A server that is away is one line when it goes and one when it comes."""

from __future__ import annotations

import asyncio

import pytest

from drakit.base.errors import Unavailable
from drakit.client import CLAIMS, PODS, Client, InProcess
from drakit.informers import Informer
from tests.builders.cluster import cluster, on_loop


class Shaky:
    """A transport that can be cut."""

    def __init__(self, inner: InProcess) -> None:
        self.in_process = inner.in_process
        self.page_size = inner.page_size
        self._inner = inner
        self.cut = True

    async def handle(self, request: object) -> object:
        if self.cut:
            raise Unavailable("connection refused")
        return await self._inner.handle(request)  # type: ignore[arg-type]

    async def close(self) -> None:
        await self._inner.close()


@on_loop
async def test_a_server_that_is_away_is_told_once_and_so_is_its_return(caplog: pytest.LogCaptureFixture) -> None:
    async with cluster() as it:
        line = Shaky(InProcess(it.server))
        client = Client(line, clock=it.clock)  # type: ignore[arg-type]
        informers = [Informer(client, each, clock=it.clock) for each in (PODS, CLAIMS)]
        running = [asyncio.create_task(each.reflector.run()) for each in informers]
        await it.run_for(60)
        line.cut = False
        await it.run_for(60)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    told = [each.message for each in caplog.records if "API server" in each.message]
    assert told == [
        "the API server cannot be reached, and is asked again and again: connection refused",
        "the API server is reached again",
    ]
