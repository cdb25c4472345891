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
from pathlib import Path
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


def tree_memory(pid: int) -> int:
    """Bytes of memory that the descendants of a process hold; the process itself, a shim, does not count."""
    total, waiting = 0, _children(pid)
    while waiting:
        child = waiting.pop()
        total += _resident(child)
        waiting += _children(child)
    return total


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            found += [int(each) for each in file.read_text().split()]
    return found


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


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
