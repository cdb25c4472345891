"""Schedulers that die after any single write of a scenario, and come back; controllers go on meanwhile.

In:  a scenario, written for a cluster in which nothing goes wrong.
Out: the end is the same whenever the scheduler dies: the same objects, and nothing made or bound twice.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from drakit.base.gates import FeatureGates
from drakit.client import Resource
from drakit.controllers.composition import ALL, Make
from drakit.scheduler.config import SchedulerConfiguration
from tests.builders.cluster import staged
from tests.builders.schedulercluster import SchedulingCluster
from tests.scenarios.crashes import Scenario, Stage, check_every_crash


class MortalScheduler(SchedulingCluster):
    """The scheduler dies once, after the write of that number, and is started again."""

    makers: Sequence[Make] = ALL
    dies_after: int | None = None
    deaths = 0
    writes: tuple[tuple[str, str], ...] = ()
    created: tuple[str, ...] = ()
    configured: SchedulerConfiguration | None = None

    async def begin(self) -> None:
        await self.start(self.makers)
        await self.start_scheduler(dies_after=self.dies_after, config=self.configured)

    async def kill_scheduler(self) -> None:
        if self.scheduler_transport is not None:
            self.writes += tuple(self.scheduler_transport.writes)
            self.created += tuple(self.scheduler_transport.created)
        await super().kill_scheduler()

    async def settle(self) -> None:
        await super().settle()
        if self.scheduler_transport is not None and self.scheduler_transport.died.is_set():
            self.deaths += 1
            await self.kill_scheduler()
            await self.start_scheduler(config=self.configured)


def mortal(gates: FeatureGates, config: SchedulerConfiguration | None) -> Callable[[], Any]:
    @asynccontextmanager
    async def stage() -> AsyncIterator[MortalScheduler]:
        async with staged(MortalScheduler, gates) as made:
            made.configured = config
            yield made

    return stage


def check_every_death(
    scenario: Callable[[SchedulingCluster], Awaitable[None]],
    kinds: Sequence[Resource[Any]],
    *,
    gates: FeatureGates,
    config: SchedulerConfiguration | None = None,
    lost: int = 1,
) -> int:
    """How many writes there are after which the scheduler died. An event that was not written yet is lost with it."""
    stage: Stage = mortal(gates, config)
    played: Scenario = scenario  # type: ignore[assignment]
    return check_every_crash(played, ALL, kinds, stage=stage, exact=False, lost=lost)
