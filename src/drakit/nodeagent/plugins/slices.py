"""Slices that nobody stands behind any more are deleted, so that nothing is scheduled onto them.

In:  the start of the agent (all slices of the node go: drivers publish again); drivers that stay away.
Out: ResourceSlices deleted by node and driver, tried again until the server did it.
"""

from __future__ import annotations

import asyncio
import logging
from random import Random

from drakit.base.clock import Clock
from drakit.base.errors import DrakitError
from drakit.client import NODES, SLICES, Client

log = logging.getLogger("drakit.nodeagent")

_FIRST = 1.0
_LONGEST = 300.0
_JITTER = 0.2


class SliceRemoval:
    """One removal per driver at a time; a driver that is back ends it. The empty name stands for all drivers."""

    def __init__(self, client: Client, node: str, clock: Clock, random: Random) -> None:
        self._client = client
        self._node = node
        self._clock = clock
        self._random = random
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def begin(self, driver: str = "") -> None:
        task = self._tasks.get(driver)
        if task is None or task.done():
            self._tasks[driver] = asyncio.create_task(self._remove(driver), name=f"slices of {driver or 'all drivers'}")

    def end(self, driver: str) -> None:
        if (task := self._tasks.pop(driver, None)) is not None:
            task.cancel()

    async def stop(self) -> None:
        tasks, self._tasks = list(self._tasks.values()), {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _remove(self, driver: str) -> None:
        wait = _FIRST
        while True:
            try:
                await self._client.get(NODES, self._node)  # without its node object, the server knows us not yet
                await self._client.delete_all(SLICES, fields=self._fields(driver))
            except DrakitError as error:
                log.warning("slices of %s on %s are not deleted yet: %s", driver or "all drivers", self._node, error)
                await self._clock.sleep(wait * (1 + _JITTER * self._random.random()))
                wait = min(wait * 2, _LONGEST)
            else:
                return

    def _fields(self, driver: str) -> dict[str, str]:
        return {"spec.nodeName": self._node} | ({"spec.driver": driver} if driver else {})
