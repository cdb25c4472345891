"""An informer on a line that can be cut, and a record of what it told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from drakit.api import ResourceClaim
from drakit.apiserver import Server
from drakit.base.clock import FakeClock
from drakit.client import CLAIMS, Client, InProcess, Key, key_of
from drakit.informers import Informer, Informers
from tests.client.servers import Flaky, a_server, until


class Record:
    """What handlers were told. Invariant, checked at every call: it fits what they were told before."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.state: dict[Key, ResourceClaim] = {}

    def __call__(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        key = key_of(new if new is not None else old)
        known = self.state.get(key)
        if new is None:
            assert known is not None, f"{key} was never there"
            del self.state[key]
            self.told.append(("delete", key.name))
            return
        assert old is known, f"{key}: the old object is not the one that was told last"
        assert known is None or known.metadata.resource_version != new.metadata.resource_version, "told twice"
        self.state[key] = new
        self.told.append(("add" if old is None else "update", key.name))


class Following:
    def __init__(self, server: Server, clock: FakeClock, *, streaming: bool) -> None:
        self.clock = clock
        self.line = Flaky(server)
        self.direct = Client(InProcess(server), clock=clock)
        self.client = Client(InProcess(self.line), clock=clock)
        self.informers = Informers(self.client, random=Random(1), streaming=streaming)
        self.informer: Informer[ResourceClaim] = self.informers.of(CLAIMS)
        self.record = Record()
        self.informer.subscribe(self.record)

    def versions(self) -> dict[Key, str]:
        return {key_of(each): each.metadata.resource_version for each in self.informer.cache}

    async def caught_up(self) -> None:
        """Until the cache is as the server is; time goes on as far as the informer waits for it."""
        wanted = {key_of(each): each.metadata.resource_version for each in await self.direct.list(CLAIMS)}
        for _ in range(200):
            try:
                await until(lambda: self.versions() == wanted, most=300)
            except AssertionError:
                self.clock.advance(1.0)
            else:
                break
        assert self.versions() == wanted
        assert self.record.state == {key_of(each): each for each in self.informer.cache}


@asynccontextmanager
async def following(*, streaming: bool = True, history: int | None = None, **_: Any) -> AsyncIterator[Following]:
    clock = FakeClock()
    async with a_server(clock, history=history) as server:
        made = Following(server, clock, streaming=streaming)
        made.informers.start()
        try:
            yield made
        finally:
            await made.informers.stop()
