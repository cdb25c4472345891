"""What a runtime keeps of its sandboxes and containers on disk, so that the next agent finds them.

sandboxes/<id>.json           SandboxRecord
containers/<id>/              one container
    container.json            ContainerRecord: written last when it is made; without it the directory is half-made
    launch.json               what its shim starts
    lock                      locked for as long as its shim lives
    launching                 by the shim, before the program may run: without it, it never did
    running.json              by the shim: pids and start times
    exit.json                 by the shim: how it ended
    work/                     the container's own directory
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from drakit.nodeagent.runtimes.contract import ContainerConfig, SandboxConfig, SandboxState

T = TypeVar("T")


class SandboxRecord(msgspec.Struct, frozen=True):
    id: str
    config: SandboxConfig
    created: datetime
    boot: str
    """The machine's boot id: nothing of a sandbox outlives its boot."""
    state: SandboxState = SandboxState.READY


class ContainerRecord(msgspec.Struct, frozen=True):
    id: str
    sandbox_id: str
    config: ContainerConfig
    created: datetime
    log_path: str
    image_ref: str = ""
    cgroup: str = ""


class ProcessPart(msgspec.Struct, frozen=True):
    pid: int
    start: str


class RunningFile(msgspec.Struct, frozen=True):
    shim: ProcessPart
    pid: ProcessPart
    boot: str
    started: datetime


class ExitFile(msgspec.Struct, frozen=True):
    code: int
    finished: datetime
    oom: bool = False
    error: str = ""
    reason: str = ""


def write(path: Path, record: msgspec.Struct) -> None:
    """All of it or nothing, whenever the machine stops."""
    temporary = path.with_name(f".{path.name}.new")
    with temporary.open("wb") as file:
        file.write(msgspec.json.encode(record))
        file.flush()
        # Before the rename: otherwise a loss of power can leave the new name with an empty file.
        os.fsync(file.fileno())
    temporary.rename(path)


def read(path: Path, kind: type[T]) -> T | None:
    """None for a file that is not there or cannot be read: what it told is lost then."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError):
        return None
