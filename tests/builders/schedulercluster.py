"""A cluster with a scheduler in it, that can be killed after any of its writes and started again.

The scheduler has the identity that it has in `drakit up`, and a request of its that is refused fails the test.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from random import Random
from typing import Any

from drakit.api.objects.pods import PodCondition
from drakit.apiserver.auth.identities import SCHEDULER
from drakit.base.gates import FeatureGates
from drakit.client import EVENTS, Client, InProcess
from drakit.controllers.composition import ALL, Make
from drakit.scheduler import Scheduler
from drakit.scheduler.config import SchedulerConfiguration
from drakit.scheduler.plugins import MAKERS, Maker
from tests.builders.cluster import Cluster, Fatal, on_loop, staged

__all__ = ["SchedulingCluster", "cluster", "on_loop", "scheduling"]


class SchedulingCluster(Cluster):
    """Controllers are started by `start`, the scheduler by `start_scheduler`; each may be there or not."""

    scheduler: Scheduler | None = None
    _scheduling: asyncio.Task[None] | None = None
    scheduler_transport: Fatal | None = None

    async def start_scheduler(
        self,
        *,
        dies_after: int | None = None,
        config: SchedulerConfiguration | None = None,
        gates: FeatureGates | None = None,
        makers: Mapping[str, Maker] = MAKERS,
        seed: int = 5,
        hints: bool = False,
    ) -> Scheduler:
        """`dies_after` that many of its writes it is gone: the last one is done, and it never hears of it."""
        self.scheduler_transport = Fatal(InProcess(self.server), dies_after)
        client = Client(InProcess(self.scheduler_transport, SCHEDULER), clock=self.clock)
        self.scheduler = Scheduler(
            client,
            clock=self.clock,
            gates=gates or self.gates,
            config=config,
            random=Random(seed),
            makers=makers,
            hints=hints,
        )
        self._scheduling = asyncio.create_task(self.scheduler.run())
        await self.settle()
        return self.scheduler

    async def kill_scheduler(self) -> None:
        if self._scheduling is not None:
            self._scheduling.cancel()
            ended = await asyncio.gather(self._scheduling, return_exceptions=True)
            assert [each for each in ended if isinstance(each, Exception)] == []
        self._scheduling = self.scheduler = None
        transport, self.scheduler_transport = self.scheduler_transport, None
        assert transport is None or transport.refused == []

    async def stop_scheduler(self) -> None:
        """In good order: what is under way is finished."""
        assert self.scheduler is not None
        assert self._scheduling is not None
        await self.scheduler.stop()
        await self._scheduling
        await self.kill_scheduler()

    async def kill(self) -> None:
        await self.kill_scheduler()
        await self.kill_controllers()

    async def kill_controllers(self) -> None:
        await super().kill()

    # What a test looks at

    async def node_of(self, name: str) -> str:
        return (await self.pod(name)).spec.node_name

    async def condition(self, name: str, kind: str = "PodScheduled") -> PodCondition | None:
        return next((each for each in (await self.pod(name)).status.conditions if each.type == kind), None)

    async def told(self, name: str, reason: str = "") -> list[str]:
        """The messages of events about a pod, of one reason or of all."""
        events = await self.all(EVENTS)
        return [
            each.message
            for each in events
            if each.involved_object.name == name and (not reason or each.reason == reason)
        ]

    def metric(self, name: str, **labels: str) -> float:
        """A sample of the scheduler's registry."""
        assert self.scheduler is not None
        return self.scheduler.registry.get_sample_value(name, labels) or 0.0


def cluster(gates: FeatureGates | None = None) -> AbstractAsyncContextManager[SchedulingCluster]:
    """A server alone; the test starts what it needs."""
    return staged(SchedulingCluster, gates)


@asynccontextmanager
async def scheduling(
    *, gates: FeatureGates | None = None, controllers: Sequence[Make] = ALL, **options: Any
) -> AsyncIterator[SchedulingCluster]:
    """A server with controllers and a scheduler."""
    async with cluster(gates) as it:
        if controllers:
            await it.start(controllers)
        await it.start_scheduler(**options)
        yield it
