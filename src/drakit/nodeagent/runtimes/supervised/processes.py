"""Processes that are not our children: named by pid and start time, watched to their end.

A pid alone may belong to somebody else by now; with the time of its start, and the boot in which both were read, it
names one process for good.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from dataclasses import dataclass
from typing import Any

from drakit.base.clock import Clock
from drakit.nodeagent.runtimes.shim.kernel import start_time

_POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class ProcessName:
    pid: int
    start: str

    @staticmethod
    def of(document: dict[str, Any]) -> ProcessName:
        return ProcessName(int(document["pid"]), str(document["start"]))

    @property
    def is_alive(self) -> bool:
        return bool(self.start) and start_time(self.pid) == self.start

    def send(self, number: signal.Signals, *, group: bool = False) -> None:
        """To it, or to its process group; nothing when it is gone."""
        if self.is_alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                (os.killpg if group else os.kill)(self.pid, number)


async def ended(process: ProcessName, clock: Clock) -> None:
    """Return once it is gone."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    except OSError:  # a kernel without pidfd
        await _poll(process, clock)
        return
    try:
        # Opened first, then compared: from here on the descriptor and the name mean the same process, or it is gone.
        if process.is_alive:
            await _readable(descriptor)
    finally:
        os.close(descriptor)


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    loop.add_reader(descriptor, _settle, done)
    try:
        await done
    finally:
        loop.remove_reader(descriptor)


def _settle(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)


async def _poll(process: ProcessName, clock: Clock) -> None:
    while process.is_alive:
        await clock.sleep(_POLL_SECONDS)
