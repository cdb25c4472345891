"""A server, a clock that stands still, and controllers that can be killed after any of their writes.

The server authorizes by roles. Controllers have the identities that they have in `drakit up`: caches are filled by
the controller manager, and each controller acts under its own service account. A request of theirs that is refused
fails the test, whatever the controller makes of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from drakit.api.exchange import Request, Response, User
from drakit.api.objects.partial import Partial
from drakit.apiserver import Server, Settings, build_server
from drakit.apiserver.auth.identities import CONTROLLER_MANAGER, controller
from drakit.base.clock import FakeClock
from drakit.base.gates import FeatureGates
from drakit.client import Client, InProcess, Resource, Transport
from drakit.client.queries import document_in
from drakit.controllers.authority import SigningAuthority
from drakit.controllers.composition import ALL, Controllers, Make
from drakit.store import MemoryStore
from tests.builders.loop import on_loop as on_loop

Plain = dict[str, Any]
WRITES = ("POST", "PUT", "PATCH", "DELETE")


class Fatal:
    """A transport whose user dies right after the write number `last`: it is done, and its answer never comes."""

    def __init__(self, inner: Transport, last: int | None = None) -> None:
        self.in_process = inner.in_process
        self.page_size = inner.page_size
        self._inner = inner
        self._last = last
        self.writes: list[tuple[str, str]] = []
        self.created: list[str] = []
        self.refused: list[str] = []
        self.died = asyncio.Event()

    async def handle(self, request: Request) -> Response:
        if self.died.is_set():
            await asyncio.Event().wait()
        response = await self._inner.handle(request)
        if response.code == 403 and '" cannot ' in (told := document_in(response.content)["message"]):
            self.refused.append(told)
        if request.method in WRITES:
            self.writes.append((request.method, request.path))
            if response.code == 201:
                self.created.append(request.path)
            if self._last is not None and len(self.writes) >= self._last:
                self.died.set()
                await asyncio.Event().wait()
        return response

    async def close(self) -> None:
        await self._inner.close()


class Cluster:
    """`client` is the test's own; controllers have theirs."""

    def __init__(self, server: Server, store: MemoryStore, clock: FakeClock, gates: FeatureGates) -> None:
        self.server = server
        self.store = store
        self.clock = clock
        self.gates = gates
        self.client = Client(InProcess(server), clock=clock)
        self.running: Controllers | None = None
        self.authority: SigningAuthority | None = None
        self._task: asyncio.Task[None] | None = None
        self.transport = Fatal(InProcess(server))

    async def start(self, makers: Sequence[Make], *, dies_after: int | None = None) -> Controllers:
        self.transport = self.line(dies_after)
        self.running = self.identified(self.transport, makers)
        self._task = asyncio.create_task(self.running.run())
        await self.settle()
        return self.running

    def line(self, dies_after: int | None = None) -> Fatal:
        """A way to the server for one life of the controllers."""
        return Fatal(InProcess(self.server), dies_after)

    def client_as(self, user: User, line: Fatal) -> Client:
        return Client(InProcess(line, user), clock=self.clock)

    def identified(self, line: Fatal, makers: Sequence[Make] = ALL) -> Controllers:
        """Controllers, each with its identity."""
        return Controllers(
            self.client_as(CONTROLLER_MANAGER, line),
            clock=self.clock,
            gates=self.gates,
            random=Random(3),
            authority=self.authority,
            client_of=lambda account: self.client_as(controller(account), line),
            makers=makers,
        )

    async def kill(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._task = self.running = None
        await self.transport.close()
        refused, self.transport.refused = self.transport.refused, []
        assert refused == []

    async def settle(self) -> None:
        """Let everything happen that happens without time going on."""
        await self.calm()

    async def calm(self) -> None:
        """Until nothing has been written for a while."""
        quiet, before = 0, -1
        while quiet < (3 if self._is_idle else 8):  # a worker that waits for time to go on is busy for ever
            for _ in range(40):
                await asyncio.sleep(0)
            revision = await self.store.revision()
            quiet = 0 if revision != before else quiet + 1
            before = revision

    @property
    def _is_idle(self) -> bool:
        return self.running is None or self.running.is_idle or self.transport.died.is_set()

    async def run_for(self, seconds: float) -> None:
        end = self.clock.monotonic() + seconds
        await self.settle()
        while (deadline := self.clock.next_deadline()) is not None and deadline <= end:
            self.clock.advance(max(deadline - self.clock.monotonic(), 0.0))
            await self.settle()
        self.clock.advance(max(end - self.clock.monotonic(), 0.0))
        await self.settle()

    # The test's own hands

    async def create(self, *documents: Plain) -> Any:
        made: Any = None
        for document in documents:
            made = await self.client.create(document)
        await self.settle()
        return made

    async def get(self, resource: Resource[Any], name: str, namespace: str = "default") -> Any:
        place = namespace if resource.kind.namespaced else ""
        found = await self.client.find(resource, name, namespace=place)
        return found.view if type(found) is Partial else found

    async def all(self, resource: Resource[Any], namespace: str = "") -> list[Any]:
        found = await self.client.list(resource, namespace=namespace)
        return [each.view if type(each) is Partial else each for each in found]

    async def set_status(self, resource: Resource[Any], name: str, status: Plain, namespace: str = "default") -> None:
        place = namespace if resource.kind.namespaced else ""
        found = await self.client.get(resource, name, namespace=place)
        await self.client.patch_status(found, status)
        await self.settle()

    async def delete(
        self,
        resource: Resource[Any],
        name: str,
        *,
        grace: int | None = 0,
        propagation: str = "",
        namespace: str = "default",
    ) -> None:
        place = namespace if resource.kind.namespaced else ""
        await self.client.delete(resource, name, namespace=place, grace=grace, propagation=propagation)
        await self.settle()


def settings(gates: FeatureGates, plugins: Sequence[str] = ()) -> Settings:
    return Settings(gates=gates, random=Random(7), modes=("Node", "RBAC"), enable_plugins=plugins)


@asynccontextmanager
async def cluster(gates: FeatureGates | None = None, *, plugins: Sequence[str] = ()) -> AsyncIterator[Cluster]:
    clock = FakeClock()
    gates = gates or FeatureGates.all_on()
    async with MemoryStore(clock=clock) as store:
        server = await build_server(store, clock=clock, settings=settings(gates, plugins))
        made = Cluster(server, store, clock, gates)
        try:
            yield made
        finally:
            await made.kill()
