"""The command as a process: who ends it, and what it leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

_MANY = [sys.executable, "-m", "drakit.simulate", "--seeds", "0..99", "--jobs", "2"]


def children(pid: int) -> list[int]:
    """Workers; not what an import may start for a moment."""
    found = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [each for each in found if "drakit.simulate" in command_of(each)]


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def runs(pid: int) -> bool:
    """Whether a process is there and is not merely unread by its parent."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def until(holds: bool, pids: list[int]) -> None:
    while any(runs(each) for each in pids) is not holds:
        time.sleep(0.05)


def test_workers_end_when_whoever_started_them_is_killed() -> None:
    with subprocess.Popen(_MANY, stdout=subprocess.DEVNULL) as command:
        while len(workers := children(command.pid)) < 2:
            time.sleep(0.05)
        command.kill()
    until(False, workers)


def test_an_interrupt_ends_the_workers_and_tells_how_far_it_came() -> None:
    with subprocess.Popen(_MANY, stdout=subprocess.PIPE, text=True) as command:
        while len(workers := children(command.pid)) < 2:
            time.sleep(0.001)
        os.kill(command.pid, signal.SIGINT)
        told = command.communicate()[0]
    assert command.returncode == 130
    assert "of 100 runs" in told
    assert not any(runs(each) for each in workers)


def test_a_reader_who_goes_ends_it_without_a_message() -> None:
    once = [sys.executable, "-m", "drakit.simulate", "--seeds", "8", "--transcript"]
    with subprocess.Popen(once, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as command:
        assert command.stdout is not None
        command.stdout.close()
        assert command.stderr is not None
        told = command.stderr.read()
    assert (command.returncode, told) == (0, "")
