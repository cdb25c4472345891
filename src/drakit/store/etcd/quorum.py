"""Whether etcd answers: the state that the engine is in when a majority of the members is gone or out of reach.

In:  questions that no endpoint answered; moments at which the copy was as new as etcd.
Out: a refusal without delay while the quorum is lost, and the age of the copy. A probe finds out when it is back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from drakit.base.clock import Clock
from drakit.store.errors import StoreClosed, StoreUnavailable

log = logging.getLogger("drakit.store")

PROBE_SECONDS = 0.1


class Quorum:
    """Invariant: while `lost` a probe is running, which ends that state."""

    def __init__(self, clock: Clock, ask: Callable[[], Awaitable[object]]) -> None:
        self._clock = clock
        self._ask = ask
        self._current = clock.monotonic()
        self._probe: asyncio.Task[None] | None = None

    @property
    def lost(self) -> bool:
        return self._probe is not None

    @property
    def age(self) -> float:
        """Seconds since the copy was known to be as new as etcd."""
        return self._clock.monotonic() - self._current

    def check(self) -> None:
        """Raise StoreUnavailable at once while the quorum is lost. Nothing was asked then, and nothing written."""
        if self.lost:
            raise StoreUnavailable("etcd does not answer: it has no quorum, or is out of reach")

    def note_current(self) -> None:
        """The copy is as new as etcd."""
        self._current = self._clock.monotonic()

    def note_silence(self) -> None:
        """No endpoint answered. From now on only the probe asks."""
        if self._probe is None:
            log.warning("etcd does not answer: writes are refused, reads come from memory and are marked")
            self._probe = asyncio.create_task(self._until_answered())

    async def close(self) -> None:
        if self._probe is not None:
            self._probe.cancel()
            with suppress(asyncio.CancelledError):
                await self._probe

    async def _until_answered(self) -> None:
        while True:
            try:
                await self._ask()
            except StoreUnavailable:
                await self._clock.sleep(PROBE_SECONDS)
            except StoreClosed:
                return
            else:
                log.warning("etcd answers again")
                self._probe = None
                return
