"""A whole cluster in this process: API server, controllers, scheduler, and somebody who creates pods and watches them.

Out: pods per second, and how long pods took from their creation until they were seen bound.
"""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from drakit.api.objects.partial import Partial
from drakit.api.objects.pods import Pod
from drakit.apiserver import Settings, build_server
from drakit.base.errors import DrakitError
from drakit.base.gates import FeatureGates
from drakit.cli.processes.collector import share_the_interpreter, spare_the_collector
from drakit.client import PODS, Client, InProcess
from drakit.controllers import ALL, ClaimController, Controllers
from drakit.informers import Informers
from drakit.scheduler import Scheduler
from drakit.store import MemoryStore, SQLiteStore, Store

CREATORS = 32
PATIENCE = 120.0

Plain = dict[str, Any]


class Measured(msgspec.Struct, frozen=True):
    """What one workload showed, in seconds. `cpu` is what the process used: it counts no waiting for a busy machine.

    `latencies` are of pods, from their creation until they were seen bound; `attempts` of the scheduler, from a pod
    that it takes from its queue to the node that it has chosen and taken in memory.
    """

    pods: int
    seconds: float
    cpu: float
    latencies: tuple[float, ...] = ()
    attempts: tuple[float, ...] = ()

    @property
    def rate(self) -> float:
        return self.pods / self.seconds if self.seconds else 0.0


def percentile(times: Sequence[float], share: float) -> float:
    ordered = sorted(times)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else 0.0


class Stuck(DrakitError):
    """No pod is bound any more, and some are not."""


class Cluster:
    """Pods are awaited by the informer that all components share, as in `drakit up`."""

    def __init__(self, client: Client, scheduler: Scheduler) -> None:
        self.client = client
        self.scheduler = scheduler
        self.informers = scheduler.informers
        self._attempts = _timed(scheduler)
        self._created: dict[str, float] = {}
        self._bound: dict[str, float] = {}
        self._awaited: set[str] = set()
        self._done = asyncio.Event()
        self.informers.of(PODS).subscribe(self._see)

    def _see(self, _old: Partial[Pod] | None, new: Partial[Pod] | None) -> None:
        if new is None or not new.view.spec.node_name:
            return
        name = f"{new.view.metadata.namespace}/{new.view.metadata.name}"
        if name in self._bound:
            return
        self._bound[name] = time.perf_counter()
        self._awaited.discard(name)
        if not self._awaited:
            self._done.set()

    async def create(self, documents: Iterable[Plain]) -> None:
        """Many at a time."""
        rest = iter(documents)

        async def work() -> None:
            for document in rest:
                await self.client.create(document)

        await asyncio.gather(*(work() for _ in range(CREATORS)))

    async def place(self, pods: Sequence[Plain]) -> Measured:
        """Create pods and wait until all are bound."""
        names = [f"{pod['metadata']['namespace']}/{pod['metadata']['name']}" for pod in pods]
        for name in names:
            self._bound.pop(name, None)
        self._awaited = set(names)
        self._done.clear()
        self._attempts.clear()
        rest = iter(zip(names, pods, strict=True))

        async def work() -> None:
            for name, pod in rest:
                self._created[name] = time.perf_counter()
                await self.client.create(pod)

        start, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(work() for _ in range(CREATORS)))
        await self._all_bound(names)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        latencies = tuple(self._bound[name] - self._created[name] for name in names)
        return Measured(len(pods), seconds, cpu, latencies, tuple(self._attempts))

    async def _all_bound(self, names: Sequence[str]) -> None:
        """As long as it takes, if only some pod is bound now and then."""
        while True:
            left = len(self._awaited)
            try:
                await asyncio.wait_for(self._done.wait(), PATIENCE)
            except TimeoutError:
                if len(self._awaited) == left:
                    raise Stuck(await self._trouble(names)) from None
            else:
                return

    async def _trouble(self, names: Sequence[str]) -> str:
        name = next(iter(self._awaited))
        place, short = name.split("/")
        found = await self.client.get(PODS, short, namespace=place)
        return f"{len(self._awaited)} of {len(names)} pods are not bound; {name} says {found.document['status']}"

    async def remove(self, pods: Sequence[Plain]) -> None:
        """Delete pods and wait until their claims are gone too."""
        rest = iter(pods)

        async def work() -> None:
            for pod in rest:
                about = pod["metadata"]
                await self.client.delete(PODS, about["name"], namespace=about["namespace"], grace=0)

        await asyncio.gather(*(work() for _ in range(CREATORS)))

    def forget(self, pods: Sequence[Plain]) -> None:
        """Let go of the times of pods that are gone."""
        for pod in pods:
            name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            self._created.pop(name, None)
            self._bound.pop(name, None)


def _timed(scheduler: Scheduler) -> list[float]:
    """How long attempts took, from now on: the scheduler's own metrics have buckets that are wider than an attempt."""
    times: list[float] = []
    cycle = scheduler._cycle
    attempt = cycle.run

    def run(*args: Any) -> Any:
        began = time.perf_counter()
        try:
            return attempt(*args)
        finally:
            times.append(time.perf_counter() - began)

    cycle.__dict__["run"] = run
    return times


@asynccontextmanager
async def cluster(
    *,
    sqlite: bool = False,
    everything: bool = False,
    event_ttl: float | None = None,
    prepare: Callable[[Store], Awaitable[None]] | None = None,
) -> AsyncIterator[Cluster]:
    """`everything`: all controllers, where otherwise those run that the benchmark of Kubernetes runs.

    `prepare` gets the store before anybody reads it.
    """
    gates = FeatureGates.all_on()
    async with AsyncExitStack() as stack:
        store: Store
        if sqlite:
            directory = stack.enter_context(tempfile.TemporaryDirectory())
            path = Path(directory) / "drakit.db"
            store = await stack.enter_async_context(await SQLiteStore.open(path, own_process=True))
        else:
            store = await stack.enter_async_context(MemoryStore())
        if prepare is not None:
            await prepare(store)
        server = await build_server(store, settings=Settings(gates=gates, event_ttl=event_ttl))

        def client() -> Client:
            return Client(InProcess(server))

        informers = Informers(client())
        makers = ALL if everything else (ClaimController,)
        controllers = Controllers(client(), gates=gates, informers=informers, makers=makers)
        scheduler = Scheduler(client(), gates=gates, informers=informers)
        made = Cluster(client(), scheduler)
        await stack.enter_async_context(made.informers.running())
        tasks = [asyncio.create_task(controllers.run()), asyncio.create_task(scheduler.run())]
        await asyncio.gather(controllers.wait_ready(), scheduler.wait_ready())
        spare_the_collector()
        share_the_interpreter()
        try:
            yield made
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            gc.unfreeze()
