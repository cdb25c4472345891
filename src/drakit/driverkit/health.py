"""What a driver says about the health of its devices, and how every listener hears of it.

In:  the driver's `health()`: each item is the state of all its devices.
Out: the newest state, for every stream that a kubelet opens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from enum import Enum

import msgspec

from drakit.base.clock import Clock


class HealthState(Enum):
    UNKNOWN = 0
    HEALTHY = 1
    UNHEALTHY = 2


class HealthReport(msgspec.Struct, frozen=True, kw_only=True):
    """The health of one device, as it is now."""

    pool: str
    device: str
    state: HealthState
    message: str = ""
    timeout: int = 0
    """Seconds after which silence of the driver means unknown; with 0 a report holds until the next one."""


class HealthBoard:
    """The newest reports, for any number of readers. Who is slow misses states in between, never the last one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.reports: tuple[HealthReport, ...] | None = None
        self.reported_at: datetime = clock.now()
        self._reported = clock.monotonic()
        self.changed = asyncio.Event()
        """Set when `reports` is replaced, or the board closed; then there is another one."""
        self.closed = False

    def put(self, reports: Sequence[HealthReport]) -> None:
        self.reports = tuple(reports)
        self.reported_at = self._clock.now()
        self._reported = self._clock.monotonic()
        self._tell()

    def close(self) -> None:
        """End all readers: no more reports come."""
        self.closed = True
        self._tell()

    def _tell(self) -> None:
        # A new event for the next change: a reader that wakes up late still finds its own event set.
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()

    def fail(self, message: str) -> None:
        """The driver's stream has ended: nothing is known of what it reported."""
        self.put([_unknown(each, message) for each in self.reports or ()])

    def current(self) -> list[HealthReport]:
        """What holds now: a report whose time is over says that nothing is known."""
        silence = self._clock.monotonic() - self._reported
        return [
            _unknown(each, f"no report for {each.timeout} s") if 0 < each.timeout < silence else each
            for each in self.reports or ()
        ]


def _unknown(report: HealthReport, message: str) -> HealthReport:
    return msgspec.structs.replace(report, state=HealthState.UNKNOWN, message=message)
