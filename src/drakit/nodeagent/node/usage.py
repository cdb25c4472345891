"""What the machine has left, and what each pod takes of it.

In:  /proc/meminfo, the file system of the agent's directory; the runtime.
Out: observations by signal; memory and disk by container.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from drakit.base.errors import DrakitError
from drakit.nodeagent.files import tree_size
from drakit.nodeagent.node.thresholds import Observation
from drakit.nodeagent.runtimes.contract import ContainerState, ContainerUsage, Runtime


class MachineReader(Protocol):
    def read(self) -> Mapping[str, Observation]:
        """By name of the signal; what cannot be read is left out."""
        ...

    async def size(self, directory: Path) -> int:
        """Bytes of the files below."""
        ...


class ThisMachine:
    """Reads the machine that the agent runs on. `directory` is where the agent keeps its files."""

    def __init__(self, directory: Path, *, memory_file: Path = Path("/proc/meminfo")) -> None:
        self._directory = directory
        self._memory_file = memory_file

    def read(self) -> Mapping[str, Observation]:
        return {**self._memory(), **self._disk()}

    async def size(self, directory: Path) -> int:
        return await asyncio.to_thread(tree_size, directory)

    def _memory(self) -> dict[str, Observation]:
        try:
            lines = self._memory_file.read_text().splitlines()
            found = {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines)}
            return {"memory.available": Observation(found["MemAvailable"], found["MemTotal"])}
        except (OSError, KeyError, ValueError, IndexError):
            return {}

    def _disk(self) -> dict[str, Observation]:
        try:
            disk = os.statvfs(self._directory)
        except OSError:
            return {}
        seen = {"nodefs.available": Observation(disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize)}
        if disk.f_files:  # some file systems do not count theirs
            seen["nodefs.inodesFree"] = Observation(disk.f_favail, disk.f_files)
        return seen


@dataclass(slots=True)
class PodUsage:
    """Of one pod: by container, and the files that belong to the pod as a whole."""

    containers: dict[str, ContainerUsage] = field(default_factory=dict)
    volumes: int = 0

    def total(self, resource: str) -> int:
        own = sum(each.of(resource) for each in self.containers.values())
        return own + (self.volumes if resource == "ephemeral-storage" else 0)


async def pod_usages(runtime: Runtime, pods_directory: Path, reader: MachineReader) -> dict[str, PodUsage]:
    """By uid, of the containers that run now. What cannot be measured counts as nothing."""
    found: dict[str, PodUsage] = {}
    for container in await runtime.containers():
        if container.state is not ContainerState.RUNNING:
            continue
        usage = found.setdefault(container.pod.uid, PodUsage())
        try:
            usage.containers[container.name] = await runtime.usage(container.id)
        except DrakitError:
            continue
    for uid, usage in found.items():
        usage.volumes = await reader.size(pods_directory / uid)
    return found
