"""Run a component against an API server that is somewhere else: reach it, lead, work, stop in good order.

In:  a client, what is to be run, how leaders are elected, where to show health and metrics.
Out: the work, until a signal comes (then what is under way may finish, and the lease is given back), or until the
     lease is lost: that raises LeaseLost, and whoever started the process starts it again.
"""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import uuid4

import typer
from prometheus_client import CollectorRegistry

from drakit.apiserver.http.listener import Listener
from drakit.base.clock import Clock
from drakit.base.errors import Unavailable
from drakit.cli.processes.collector import load_without_collector, spare_the_collector
from drakit.cli.processes.components import Embedded
from drakit.cli.processes.diagnostics import Diagnostics, hide_creation_times, url_of
from drakit.cli.processes.pages import pages_of
from drakit.client import Client
from drakit.informers import LeaderElector, Timing

PATIENCE = 10.0
"""Seconds that a server has to answer at the start; and that work has to finish in the end."""
_PAUSE = 0.5


@dataclass(frozen=True, slots=True)
class Election:
    """Which lease the replicas compete for, and how fast."""

    name: str
    namespace: str
    timing: Timing


def elector_of(election: Election | None, client: Client, registry: CollectorRegistry) -> LeaderElector | None:
    """The elector of this process; none where there is no election, and everybody works."""
    if election is None:
        return None
    return LeaderElector(
        client,
        name=election.name,
        namespace=election.namespace,
        # The random part tells two processes of one machine apart, and a restart from its predecessor.
        identity=f"{socket.gethostname()}_{uuid4()}",
        timing=election.timing,
        registry=registry,
    )


class RunnableComponent(Embedded, Protocol):
    @property
    def is_synced(self) -> bool:
        """Whether its caches are filled."""
        ...


@dataclass(frozen=True, slots=True)
class ComponentRun:
    """What is to be run, and by whom: with an elector, only while this process leads."""

    title: str
    work: RunnableComponent
    registry: CollectorRegistry
    clock: Clock
    elector: LeaderElector | None = None
    resources: CollectorRegistry | None = None

    async def run(self) -> None:
        await (self.work.run() if self.elector is None else self.elector.run(self.work.run))

    @property
    def is_standby(self) -> bool:
        return self.elector is not None and not self.elector.leading

    def observed(self) -> Diagnostics:
        return Diagnostics(
            self.registry,
            health={"ping": _ping, "leaderElection": self._check_lease},
            ready={"informers": self._check_informers},
            resources=self.resources,
            documents=pages_of(self.work),
        )

    async def _check_lease(self) -> None:
        if self.elector is not None and self.elector.is_overdue:
            raise Unavailable("the lease has run out, and the work has not ended")

    async def _check_informers(self) -> None:
        if not self.is_standby and not self.work.is_synced:
            raise Unavailable("caches are not filled yet")


async def _ping() -> None:
    return


async def fulfil(run: ComponentRun, client: Client, server: str, bound: socket.socket) -> None:
    """Until told to stop. Raise Unavailable when the server does not answer, LeaseLost when another one leads."""
    load_without_collector()
    with _signalled() as signals:
        await _reach(client, server, run.clock)
        async with Listener(run.observed(), bound).running(), _at_work(run) as working:
            typer.echo(f"drakit {run.title}: following {server}, metrics on {url_of(bound)}/metrics")
            spare_the_collector()
            hide_creation_times()
            await _first(working, signals.asked.wait())
            # A standby has nothing under way; it is cancelled when the context ends.
            if not working.done() and not run.is_standby:
                await _first(_finish(run, working), signals.insisted.wait())
        if not working.cancelled():
            # Raises what the work ended with: LeaseLost must become an exit code.
            working.result()


@asynccontextmanager
async def _at_work(run: ComponentRun) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(run.run(), name=run.title)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _finish(run: ComponentRun, working: asyncio.Task[None]) -> None:
    """Stop the work and wait until it has finished, for at most `PATIENCE` seconds."""
    await run.work.stop()
    await asyncio.wait((working,), timeout=PATIENCE)


async def _first(*doing: Awaitable[Any]) -> None:
    """Until one of them is done. Tasks among them go on, everything else ends here."""
    futures = [asyncio.ensure_future(each) for each in doing]
    try:
        await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for future, given in zip(futures, doing, strict=True):
            if future is not given:
                future.cancel()


async def _reach(client: Client, server: str, clock: Clock) -> None:
    """A server that has just been started may need a moment; one that refuses us needs none."""
    begun = clock.monotonic()
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    await client.document("/version")
                except Unavailable as error:
                    if clock.monotonic() - begun > PATIENCE - _PAUSE:
                        raise Unavailable(f"{server} does not answer: {error}") from error
                    await clock.sleep(_PAUSE)
                else:
                    return
    except TimeoutError:
        raise Unavailable(f"{server} does not answer within {PATIENCE:g} s") from None


class _Signals:
    """SIGTERM and SIGINT ask to stop; a second one does not want to wait."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.insisted = asyncio.Event()

    def came(self) -> None:
        (self.insisted if self.asked.is_set() else self.asked).set()


@contextmanager
def _signalled() -> Iterator[_Signals]:
    loop, signals = asyncio.get_running_loop(), _Signals()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signals.came)
    try:
        yield signals
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
