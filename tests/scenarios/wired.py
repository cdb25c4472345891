"""The stage of a scenario over real sockets: every client, the test's and the controllers', talks HTTP to the server.

The test's client is the administrator's. Controllers come with its credentials and act as themselves, so that the
server judges each by its own rights.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from drakit.api.exchange import Request, Response, User
from drakit.apiserver import Server, build_server
from drakit.apiserver.auth.authentication import StaticTokens
from drakit.apiserver.auth.identities import ADMIN
from drakit.base.clock import FakeClock
from drakit.base.gates import FeatureGates
from drakit.client import Access, Client, Fixed, InProcess, Trust, bearer
from drakit.client.transport.http import Http
from drakit.store import MemoryStore
from tests.builders.cluster import Fatal, settings
from tests.client.servers import listening
from tests.scenarios.crashes import Mortal

TOKEN = "for-tests"


class Acting:
    """Sends requests as somebody else."""

    in_process = False

    def __init__(self, line: Fatal, user: User) -> None:
        self.page_size = line.page_size
        self._line = line
        self._headers = {"impersonate-user": user.name}
        if user.groups:
            self._headers["impersonate-group"] = "\n".join(user.groups)

    async def handle(self, request: Request) -> Response:
        return await self._line.handle(msgspec.structs.replace(request, headers={**request.headers, **self._headers}))

    async def close(self) -> None:
        await self._line.close()


class Wired(Mortal):
    """A cluster behind sockets: the time of its loop flows, and only the clock of its components stands still."""

    def __init__(self, server: Server, store: MemoryStore, clock: FakeClock, url: str) -> None:
        # Nothing of the simulated cluster is started: the server that listens is the only part that runs.
        self.server = server
        self.store = store
        self.hands = clock
        self.clock = clock
        self.gates = FeatureGates.all_on()
        self.url = url
        self.transport = Fatal(InProcess(server))
        self.wired_client = Client(self.connect(), clock=clock)

    @property
    def client(self) -> Client:
        return self.wired_client

    def connect(self) -> Http:
        return Http(Access(server=self.url, credentials=Fixed(bearer(TOKEN)), trust=Trust()))

    def line(self, dies_after: int | None = None) -> Fatal:
        return Fatal(self.connect(), dies_after)

    def client_as(self, user: User, line: Fatal) -> Client:
        return Client(Acting(line, user), clock=self.clock)

    async def calm(self) -> None:
        """Questions and answers over the same sockets let everything else there happen too."""
        quiet, before = 0, -1
        while quiet < (4 if self._is_idle else 20):
            for _ in range(3):
                await self.client.document("/version")
            revision = await self.store.revision()
            synced = self.running is None or self.running.is_synced or self.transport.died.is_set()
            quiet = 0 if revision != before or not synced else quiet + 1
            before = revision

    @property
    def _is_idle(self) -> bool:
        return self.running is None or self.running.is_idle or self.transport.died.is_set()

    async def pass_time(self, end: float) -> bool:
        now = self.hands.monotonic()
        due = self.hands.next_deadline()
        self.hands.advance(max(min(end, due if due is not None else end) - now, 0.0))
        return now < end


@asynccontextmanager
async def over_sockets() -> AsyncIterator[Wired]:
    clock, chosen = FakeClock(), settings(FeatureGates.all_on())
    chosen.tokens = StaticTokens({TOKEN: ADMIN})
    async with MemoryStore(clock=clock) as store:
        server = await build_server(store, clock=clock, settings=chosen)
        async with listening(server) as url:
            it = Wired(server, store, clock, url)
            try:
                yield it
            finally:
                await it.kill()
                await it.client.close()
