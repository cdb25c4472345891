"""What a driver says about the health of its devices, and how every listener hears of it.

In:  the driver's `health()`: each item is the state of all its devices.
Out: the newest state for every stream that a kubelet opens, at once and after each change.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from enum import Enum

import msgspec


class HealthStatus(Enum):
    UNKNOWN = 0
    HEALTHY = 1
    UNHEALTHY = 2


class HealthReport(msgspec.Struct, frozen=True, kw_only=True):
    """The health of one device, as it is now."""

    pool: str
    device: str
    status: HealthStatus
    message: str = ""
    timeout: int = 0
    """Seconds after which silence means unknown; 0 leaves that to the kubelet (30 s)."""


class HealthBoard:
    """The newest reports, for any number of readers. Readers who are slow miss states in between, never the last."""

    def __init__(self) -> None:
        self.reports: tuple[HealthReport, ...] | None = None
        self._changed = asyncio.Event()

    def put(self, reports: Sequence[HealthReport]) -> None:
        self.reports = tuple(reports)
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def follow(self) -> AsyncIterator[tuple[HealthReport, ...]]:
        """What is known now, if anything is, and every newer state."""
        while True:
            changed = self._changed
            if self.reports is not None:
                yield self.reports
            await changed.wait()
