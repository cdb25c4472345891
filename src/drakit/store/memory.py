"""The engine without a file: everything is in memory, for tests, simulations and `--ephemeral`.

A write is done before its call first awaits anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from drakit.base.clock import Clock, RealClock
from drakit.store.embedded import EmbeddedStore
from drakit.store.errors import StoreClosed
from drakit.store.history import Retention
from drakit.store.records import StoreEvent, WriteTerms
from drakit.store.state import State


class MemoryStore(EmbeddedStore):
    def __init__(self, *, clock: Clock | None = None, retention: Retention | None = None) -> None:
        super().__init__(State(retention or Retention()), clock or RealClock())

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._watches.close(StoreClosed())

    async def _commit(self, key: str, value: bytes | None, terms: WriteTerms) -> StoreEvent:  # noqa: ARG002
        event = self._state.event(self._state.revision + 1, key, value)
        if self._publish(event):
            # A loop of writes never suspends here: without this turn it would drop watchers that keep up well.
            await asyncio.sleep(0)
        return event

    def _forget(self, revisions: Sequence[int]) -> None:
        """The garbage collector has them already."""

    async def _sweep(self) -> None:
        """The garbage collector has them already."""
