"""Pods that wait for a change of a claim.

In:  pods with the claim that holds them up, as it was when they read it; word of changes, where somebody has it.
Out: the pod is woken as soon as the claim is seen to be another one.

A node may GET the claims of its pods and not watch them, so that a claim that is waited for is read again every second,
however long the wait is. A process that has a cache of all claims tells of changes at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from drakit.base.clock import Clock
from drakit.base.errors import DrakitError
from drakit.client import CLAIMS, Client, Forbidden, NotFound

LOOK_SECONDS = 1.0
MOST_PER_SECOND = 10
"""Claims that one node reads in a second: with more of them, each is read less often."""
ABSENT = ""


@dataclass(frozen=True, slots=True)
class SeenClaim:
    """A claim as it was read; `version` is empty when it was not there, or not to be read by this node."""

    namespace: str
    name: str
    version: str = ABSENT


class ClaimWaits:
    """Invariant: the task that reads claims runs exactly while some pod waits."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._waits: dict[str, tuple[SeenClaim, Callable[[], None]]] = {}
        self._task: asyncio.Task[None] | None = None

    def begin(self, pod: str, claim: SeenClaim, wake: Callable[[], None]) -> None:
        """Call `wake` once the claim differs; of one pod, only the last wait counts."""
        self._waits[pod] = (claim, wake)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look(), name="claims that pods wait for")

    def end(self, pod: str) -> None:
        """Idempotent."""
        self._waits.pop(pod, None)

    def tell(self, namespace: str, name: str, version: str) -> None:
        """Report the current state of a claim, and wake the pods that wait for another one."""
        for pod, (claim, wake) in list(self._waits.items()):
            if (claim.namespace, claim.name) == (namespace, name) and claim.version != version:
                self.end(pod)
                wake()

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _look(self) -> None:
        while self._waits:
            await self._clock.sleep(max(LOOK_SECONDS, len(self._names()) / MOST_PER_SECOND))
            for namespace, name in self._names():
                await self._read(namespace, name)

    def _names(self) -> list[tuple[str, str]]:
        return list(dict.fromkeys((claim.namespace, claim.name) for claim, _ in self._waits.values()))

    async def _read(self, namespace: str, name: str) -> None:
        try:
            found = await self._client.get(CLAIMS, name, namespace=namespace)
        except (NotFound, Forbidden):
            self.tell(namespace, name, ABSENT)
        except DrakitError:
            return  # the server is away: nothing is known
        else:
            self.tell(namespace, name, found.metadata.resource_version)
