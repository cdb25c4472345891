"""Ways between a scheduler and the server on which things go wrong; and schedulers that use them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from random import Random

import msgspec

from drakit.api.exchange import Request, Response, StatusContent
from drakit.apiserver.auth.identities import SCHEDULER
from drakit.base.status import failure
from drakit.client import Client, ConnectionFailed, InProcess
from drakit.scheduler import Scheduler
from drakit.scheduler.config import SchedulerConfiguration, default_configuration
from drakit.scheduler.plugins import MAKERS, Maker
from tests.builders.cluster import WRITES, Fatal
from tests.builders.schedulercluster import SchedulingCluster

Fault = Callable[[Request, Callable[[], Awaitable[Response]]], Awaitable[Response]]


class Unreliable(Fatal):
    """Each write that `concerns` says yes to meets the next fault; when there are none left, all is well."""

    def __init__(self, it: SchedulingCluster, *faults: Fault, concerns: Callable[[Request], bool]) -> None:
        super().__init__(InProcess(it.server))
        self.faults = list(faults)
        self.met = 0
        self._concerns = concerns

    async def handle(self, request: Request) -> Response:
        if request.method not in WRITES or not self.faults or not self._concerns(request):
            return await super().handle(request)
        self.met += 1
        fault = self.faults.pop(0)
        return await fault(request, lambda: super(Unreliable, self).handle(request))


def on_claims(request: Request) -> bool:
    return "/resourceclaims/" in request.path


def on_claim_status(request: Request) -> bool:
    return on_claims(request) and request.path.endswith("/status")


async def well(request: Request, go: Callable[[], Awaitable[Response]]) -> Response:
    return await go()


def answer(code: int, reason: str) -> Fault:
    """The server says no, and has done nothing."""

    async def fault(request: Request, go: Callable[[], Awaitable[Response]]) -> Response:
        return Response(code=code, content=StatusContent(failure(code, reason, f"injected {reason}")))

    return fault


async def lost(request: Request, go: Callable[[], Awaitable[Response]]) -> Response:
    """The server did it, and the answer never came."""
    await go()
    raise ConnectionFailed("injected: the connection broke", sent=True)


async def unsent(request: Request, go: Callable[[], Awaitable[Response]]) -> Response:
    raise ConnectionFailed("injected: no connection", sent=False)


def held(until: asyncio.Event) -> Fault:
    """The request takes its time."""

    async def fault(request: Request, go: Callable[[], Awaitable[Response]]) -> Response:
        await until.wait()
        return await go()

    return fault


def after(meanwhile: Callable[[], Awaitable[object]]) -> Fault:
    """Something else happens first, and everybody hears of it."""

    async def fault(request: Request, go: Callable[[], Awaitable[Response]]) -> Response:
        await meanwhile()
        for _ in range(60):
            await asyncio.sleep(0)
        return await go()

    return fault


@asynccontextmanager
async def another_scheduler(
    it: SchedulingCluster,
    transport: Fatal,
    *,
    name: str = "default-scheduler",
    seed: int = 9,
    settle: bool = True,
    config: SchedulerConfiguration | None = None,
    makers: Mapping[str, Maker] = MAKERS,
) -> AsyncIterator[Scheduler]:
    """One more scheduler, for pods that name it."""
    client = Client(InProcess(transport, SCHEDULER), clock=it.clock)
    config = config or default_configuration(it.gates)
    profiles = tuple(msgspec.structs.replace(each, scheduler_name=name) for each in config.profiles)
    config = msgspec.structs.replace(config, profiles=profiles)
    made = Scheduler(client, clock=it.clock, gates=it.gates, config=config, random=Random(seed), makers=makers)
    task = asyncio.create_task(made.run())
    if settle:
        await it.settle()
    try:
        yield made
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert transport.refused == []
