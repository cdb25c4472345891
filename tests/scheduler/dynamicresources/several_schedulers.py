"""Scenes and objects for the tests of several schedulers, here and elsewhere."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from drakit.client import InProcess
from tests.builders.cluster import Fatal
from tests.builders.schedulercluster import SchedulingCluster
from tests.scheduler.dynamicresources.faults import Unreliable, another_scheduler, held, on_claim_status
from tests.scheduler.dynamicresources.scenes import (
    Plain,
)


async def race(it: SchedulingCluster, *objects: Plain) -> tuple[asyncio.Event, AsyncExitStack]:
    """Two schedulers, of which the second is held up at its allocation until the first is done."""
    stack, release = AsyncExitStack(), asyncio.Event()
    slow = Unreliable(it, held(release), concerns=on_claim_status)
    await stack.enter_async_context(another_scheduler(it, slow, name="slow"))
    for each in objects:
        await it.client.create(each)
    await it.settle()
    assert slow.met
    await stack.enter_async_context(another_scheduler(it, Fatal(InProcess(it.server)), name="fast"))
    await it.settle()
    return release, stack
