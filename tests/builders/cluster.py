"""The cluster of `drakit.testing`, with controllers of a test's choice that can be killed after any of their writes.

The server authorizes by roles. Controllers have the identities that they have in `drakit up`: caches are filled by
the controller manager, and each controller acts under its own service account. A request of theirs that is refused
fails the test, whatever the controller makes of it.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, ParamSpec, TypeVar

from drakit.api.exchange import Request, Response, User
from drakit.api.objects.partial import Partial
from drakit.apiserver import Settings
from drakit.apiserver.auth.identities import CONTROLLER_MANAGER, controller
from drakit.base.gates import FeatureGates
from drakit.client import Client, InProcess, Resource, Transport
from drakit.client.queries import document_in
from drakit.controllers.authority import SigningAuthority
from drakit.controllers.composition import ALL, Controllers, Make
from drakit.simulate.cluster import ClusterPlan, SimulatedCluster, running_cluster
from drakit.simulate.loops import SteppedLoop
from drakit.store import MemoryStore
from drakit.testing import AsyncCluster

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C", bound="Cluster")
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


class Cluster(AsyncCluster):
    """A server alone at first; the test starts what it needs. `client` is the test's own; controllers have theirs."""

    running: Controllers | None = None
    authority: SigningAuthority | None = None
    _task: asyncio.Task[None] | None = None

    def __init__(self, simulated: SimulatedCluster, stack: AsyncExitStack, directory: Path) -> None:
        super().__init__(simulated, stack, directory)
        self.server = simulated.server
        self.store = simulated.store
        self.clock = simulated.clock
        self.gates = simulated.plan.gates
        self.transport = Fatal(InProcess(self.server))

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
        await self.calm()

    async def calm(self) -> None:
        """Until nothing is left to do without time going on."""
        await super().settle()

    async def run_for(self, seconds: float) -> None:
        """Let time go by, and settle at each instant in which something happens."""
        end = self.clock.monotonic() + seconds
        await self.settle()
        while await self.pass_time(end):
            await self.settle()

    # The test's own hands

    async def find(self, resource: Resource[Any], name: str, namespace: str = "default") -> Any:
        place = namespace if resource.kind.namespaced else ""
        found = await self.client.find(resource, name, namespace=place)
        return found.view if type(found) is Partial else found

    async def delete(self, kind: Resource[Any], name: str, *, grace: int | None = 0, propagation: str = "") -> None:
        """At once, as there is no node agent that would wait for containers."""
        await super().delete(kind, name, grace=grace, propagation=propagation)

    async def all(self, resource: Resource[Any], namespace: str = "") -> list[Any]:
        found = await self.client.list(resource, namespace=namespace)
        return [each.view if type(each) is Partial else each for each in found]


def settings(gates: FeatureGates, plugins: Sequence[str] = ()) -> Settings:
    return Settings(gates=gates, random=Random(7), modes=("Node", "RBAC"), enable_plugins=plugins)


@asynccontextmanager
async def staged(
    make: type[C],
    gates: FeatureGates | None = None,
    *,
    accounts: bool = False,
    store: MemoryStore | None = None,
    seed: int = 7,
) -> AsyncIterator[C]:
    """A cluster of one's own kind; what it has started is killed at the end."""
    plan = ClusterPlan(server_only=True, gates=gates or FeatureGates.all_on(), seed=seed)
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(prefix="drakit-")))
        simulated = await stack.enter_async_context(running_cluster(plan, accounts=accounts, store=store))
        made = make(simulated, stack, directory)
        try:
            yield made
        finally:
            await made.kill()


def cluster(gates: FeatureGates | None = None, *, accounts: bool = False) -> AbstractAsyncContextManager[Cluster]:
    return staged(Cluster, gates, accounts=accounts)


def run_stepped(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a loop whose time stands still."""
    with asyncio.Runner(loop_factory=SteppedLoop) as runner:
        return runner.run(work)


def on_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        run_stepped(test(*args, **kwargs))

    return run
