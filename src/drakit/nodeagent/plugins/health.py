"""The health of devices, as drivers report it.

In:  the health stream of every registered driver.
Out: the health of a device now, with its message; word whenever that changes, also when a report is overdue.

A report that stays away for the device's timeout makes it Unknown at the moment when it is due. The last reports are
kept in a file, for whoever looks at the node; the agent itself starts without them, as drivers tell the full state.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from drakit.api.text.times import format_time
from drakit.base.clock import Clock
from drakit.nodeagent.files import Flush, write_atomically
from drakit.nodeagent.plugins.contract import DeviceHealthReport, DriverPeer, PluginCallFailed

log = logging.getLogger("drakit.nodeagent")

Device = tuple[str, str]
"""Pool and device."""

HEALTHY, UNHEALTHY, UNKNOWN = "Healthy", "Unhealthy", "Unknown"
FILE = "dra_health_state"
DEFAULT_TIMEOUT = 30
RECONNECT_SECONDS = 5.0
LONGEST_MESSAGE = 1024


@dataclass(slots=True)
class _Known:
    health: str
    message: str
    timeout: int
    at: float
    wall: str
    told: str
    """What was last told to listeners; differs from `health` once the report is overdue."""


class HealthReports:
    """Invariant: `told` of every device is what its pods show, as far as they have been woken."""

    def __init__(self, clock: Clock, *, directory: Path | None = None, flush: Flush = os.fsync) -> None:
        self.on_change: list[Callable[[str, Sequence[Device]], None]] = []
        self._clock = clock
        self._file = directory / FILE if directory is not None else None
        self._flush = flush
        self._known: dict[str, dict[Device, _Known]] = {}
        self._tellers: dict[str, DriverPeer] = {}
        """Which instance of a driver has told what is known of its devices."""
        self._timers: dict[tuple[str, Device], asyncio.Task[None]] = {}

    def of(self, driver: str, pool: str, device: str) -> tuple[str, str]:
        """The current health of a device, with its message."""
        known = self._known.get(driver, {}).get((pool, device))
        if known is None or self._is_overdue(known):
            return UNKNOWN, ""
        return known.health, known.message

    async def follow(self, driver: str, peer: DriverPeer) -> None:
        """Read the stream of one instance until cancelled; a driver without the service is not asked again."""
        while await self._stream(driver, peer):
            await self._clock.sleep(RECONNECT_SECONDS)

    async def _stream(self, driver: str, peer: DriverPeer) -> bool:
        """Read one stream to its end; whether it is worth another try."""
        stream = peer.watch_health()
        try:
            async for reports in stream:
                self._tellers[driver] = peer
                self.take(driver, reports)
        except PluginCallFailed as error:
            log.debug("health of %s: %s", driver, error)
            return error.code != "Unimplemented"
        finally:
            # An instance that cannot be reached any more must not undo what another one tells.
            if self._tellers.get(driver) is peer:
                self._clear(driver)
            if (close := getattr(stream, "aclose", None)) is not None:
                await close()
        return True

    def take(self, driver: str, reports: Sequence[DeviceHealthReport]) -> None:
        """The full state of a driver's devices."""
        mine = self._known.setdefault(driver, {})
        changed = []
        for report in reports:
            device = (report.pool, report.device)
            if self._take(mine, device, report):
                changed.append(device)
            self._watch_timeout(driver, device)
        reported = {(report.pool, report.device) for report in reports}
        for device, known in mine.items():
            if device not in reported and known.health != UNKNOWN and self._is_overdue(known):
                known.health = known.told = UNKNOWN
                known.message = ""
                changed.append(device)
        if changed:
            self._write()
        self._tell(driver, changed)

    def _take(self, mine: dict[Device, _Known], device: Device, report: DeviceHealthReport) -> bool:
        timeout = report.timeout if report.timeout > 0 else DEFAULT_TIMEOUT
        message = shortened(report.message)
        before = mine.get(device)
        now, wall = self._clock.monotonic(), format_time(self._clock.now())
        mine[device] = _Known(report.health, message, timeout, now, wall, report.health)
        if before is None:
            return True
        return (before.told, before.message, before.timeout) != (report.health, message, timeout)

    def _watch_timeout(self, driver: str, device: Device) -> None:
        """One timer per device: it looks again when the newest report is due."""
        key = (driver, device)
        if key not in self._timers:
            task = asyncio.create_task(self._expire(driver, device), name=f"health of {driver} {device}")
            task.add_done_callback(lambda _: self._timers.pop(key, None))
            self._timers[key] = task

    async def _expire(self, driver: str, device: Device) -> None:
        while (known := self._known.get(driver, {}).get(device)) is not None:
            if (left := known.at + known.timeout - self._clock.monotonic()) <= 0:
                known.told = UNKNOWN
                break
            await self._clock.sleep(left)
        self._tell(driver, [device])

    def _is_overdue(self, known: _Known) -> bool:
        return self._clock.monotonic() - known.at >= known.timeout

    def _clear(self, driver: str) -> None:
        """The stream has ended: nothing is known any more. Pods show it at the latest when the timeout is over."""
        del self._tellers[driver]
        if self._known.pop(driver, None) is not None:
            self._write()

    def _tell(self, driver: str, devices: Sequence[Device]) -> None:
        if devices:
            for call in self.on_change:
                call(driver, devices)

    def _write(self) -> None:
        if self._file is None:
            return
        content = {driver: {"Devices": _devices(known.items())} for driver, known in sorted(self._known.items())}
        try:
            write_atomically(self._file, json.dumps(content, separators=(",", ":")).encode(), flush=self._flush)
        except OSError as error:  # the file is for onlookers: a full disk is no reason to stop listening
            log.warning("%s is not written: %s", self._file, error)

    async def stop(self) -> None:
        timers = list(self._timers.values())
        for timer in timers:
            timer.cancel()
        await asyncio.gather(*timers, return_exceptions=True)


def _devices(known: Iterable[tuple[Device, _Known]]) -> dict[str, dict[str, object]]:
    return {
        f"{pool}/{device}": {
            "PoolName": pool,
            "DeviceName": device,
            "Health": each.health,
            "LastUpdated": each.wall,
            "HealthCheckTimeout": each.timeout * 1_000_000_000,
            "Message": each.message,
        }
        for (pool, device), each in sorted(known)
    }


def shortened(message: str) -> str:
    """At most 1024 bytes; what is cut ends in three dots."""
    encoded = message.encode()
    if len(encoded) <= LONGEST_MESSAGE:
        return message
    return encoded[: LONGEST_MESSAGE - 3].decode(errors="ignore") + "..."
