"""Cgroups that the agent makes itself, version 1 or 2, where it may.

In:  a name (pod, container) and limits.
Out: files in which a process writes its pid to be held to them, and the files in which the kernel counts OOM kills.

Version 2 is used where the unified hierarchy has the memory controller; a machine with both is a version 1 machine.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from drakit.base.clock import Clock
from drakit.nodeagent.runtimes.contract import NO_LIMITS, ContainerLimits, LimitsRefused

_V1_CONTROLLERS = ("cpu", "memory", "pids")
_V2_CONTROLLERS = ("cpu", "memory", "pids")
_V1_MEMORY = ("memory.usage_in_bytes", "total_inactive_file")
_TRIES, _TRY_AGAIN = 50, 0.02
_SWAP = ("memory.memsw.limit_in_bytes", "memory.swap.max")


@dataclass(frozen=True, slots=True)
class Cgroup:
    """`procs`: write a pid into each to join. `oom`: files with an `oom_kill` line."""

    directories: tuple[Path, ...] = ()
    procs: tuple[str, ...] = ()
    oom: tuple[str, ...] = ()


NO_CGROUP = Cgroup()


def cgroup_name(node: str, directory: Path) -> str:
    """The name of a node's cgroups: by its directory, as two nodes of one machine may have the same name.

    An agent removes empty cgroups that it does not know. Those of another one may be empty because their container is
    just being started.
    """
    return f"{node}-{hashlib.sha256(bytes(directory.resolve())).hexdigest()[:12]}"


class Cgroups:
    """All cgroups of one agent, below `drakit/<name>` of each hierarchy. Invariant: no other agent has its name."""

    def __init__(self, name: str, *, root: Path = Path("/sys/fs/cgroup")) -> None:
        self._name = name
        self._root = root
        self.version = 2 if _has_controllers(root) else 1 if (root / "memory").is_dir() else 0

    def make(self, path: str, limits: ContainerLimits, *, pod: ContainerLimits = NO_LIMITS) -> Cgroup:
        """The cgroup of one container, within its pod's, which holds them all to `pod`.

        Without the right to make one: none, or LimitsRefused if limits must hold.
        """
        try:
            return self._make(path, limits, pod)
        except OSError as error:
            self._remove(path)
            if limits.needs_cgroup or pod.needs_cgroup:
                raise LimitsRefused(f"limits cannot be held: no cgroup may be made ({error})") from None
            return NO_CGROUP

    async def remove(self, path: str, clock: Clock) -> None:
        """Remove a container's cgroup once its processes are gone. A missing one is a success.

        The kernel keeps a cgroup for a moment longer than its last process. What is there after a second stays, for the
        next agent's `sweep`.
        """
        for _ in range(_TRIES):
            if self._remove(path):
                return
            await clock.sleep(_TRY_AGAIN)

    def sweep(self, known: Collection[str]) -> None:
        """Remove what an earlier agent left: everything empty that is not among the paths of known containers."""
        for path in self._paths() - set(known):
            self._remove(path)

    async def clear(self, clock: Clock) -> None:
        """Remove all of them, once no container runs any more."""
        for path in self._paths():
            await self.remove(path, clock)

    def leave(self) -> None:
        """Remove the agent's own cgroup, unless pods run on in it."""
        for directory in self._directories(""):
            with contextlib.suppress(OSError):
                directory.rmdir()

    def memory_of(self, path: str) -> int | None:
        """The working set in bytes: usage without the inactive page cache. None when there is no such cgroup."""
        now, cached = ("memory.current", "inactive_file") if self.version == 2 else _V1_MEMORY
        for directory in self._directories(path):
            try:
                held = int((directory / now).read_text())
                lines = [line.split() for line in (directory / "memory.stat").read_text().splitlines()]
            except (OSError, ValueError):
                continue  # another controller's, or none
            return max(held - next((int(line[1]) for line in lines if line[0] == cached), 0), 0)
        return None

    def _remove(self, path: str) -> bool:
        directories = self._directories(path)
        for directory in directories:
            with contextlib.suppress(OSError):
                directory.rmdir()
            with contextlib.suppress(OSError):  # the pod's, once its last container is gone
                directory.parent.rmdir()
        return not any(directory.exists() for directory in directories)

    def _paths(self) -> set[str]:
        """Of the containers whose cgroups are there."""
        return {str(leaf.relative_to(base)) for base in self._directories("") for leaf in base.glob("*/*/")}

    def _directories(self, path: str) -> list[Path]:
        if self.version == 2:
            return [self._root / "drakit" / self._name / path]
        if self.version == 1:
            return [self._root / controller / "drakit" / self._name / path for controller in _V1_CONTROLLERS]
        return []

    def _make(self, path: str, limits: ContainerLimits, pod: ContainerLimits) -> Cgroup:
        directories = self._directories(path)
        if not directories:
            raise FileNotFoundError(f"{self._root} has no cgroup hierarchy with memory")
        for directory in directories:
            directory.mkdir(parents=True, exist_ok=True)
        if self.version == 2:
            self._hand_down(directories[0])
        # The pod comes first: no container may run in it before the pod is limited.
        self._limit([directory.parent for directory in directories], pod)
        self._limit(directories, limits)
        oom = "memory.events" if self.version == 2 else "memory.oom_control"
        return Cgroup(
            directories=tuple(directories),
            procs=tuple(str(directory / "cgroup.procs") for directory in directories),
            oom=tuple(str(directory / oom) for directory in directories if (directory / oom).exists()),
        )

    def _hand_down(self, leaf: Path) -> None:
        """Enable the controllers on every level above the leaf."""
        # From the root down: a level can only pass on the controllers that its own parent has passed to it.
        above = [parent for parent in reversed(leaf.parents) if parent.is_relative_to(self._root)]
        for parent in above:
            control = parent / "cgroup.subtree_control"
            missing = set(_V2_CONTROLLERS) - set(control.read_text().split())
            if missing:
                control.write_text(" ".join(f"+{name}" for name in sorted(missing)))

    def _limit(self, directories: list[Path], limits: ContainerLimits) -> None:
        settings = _v2_settings(limits) if self.version == 2 else _v1_settings(limits)
        for name, value in settings.items():
            self._write(directories, name, value)

    def _write(self, directories: list[Path], name: str, value: str) -> None:
        controller = name.partition(".")[0]
        # Version 1 has a hierarchy per controller, so a file exists in the directory of its own controller only.
        index = 0 if self.version == 2 else _V1_CONTROLLERS.index(controller)
        file = directories[index] / name
        if name not in _SWAP or file.exists():  # a kernel without swap accounting has no such file
            file.write_text(value)


def _has_controllers(root: Path) -> bool:
    try:
        return "memory" in (root / "cgroup.controllers").read_text().split()
    except OSError:
        return False


def _v1_settings(limits: ContainerLimits) -> dict[str, str]:
    settings = {}
    if limits.cpu_shares:
        settings["cpu.shares"] = str(limits.cpu_shares)
    if limits.cpu_quota:
        settings["cpu.cfs_period_us"] = str(limits.cpu_period)
        settings["cpu.cfs_quota_us"] = str(limits.cpu_quota)
    if limits.memory_bytes:
        # The order counts: the kernel refuses a memory+swap limit below the memory limit.
        settings["memory.limit_in_bytes"] = str(limits.memory_bytes)
        settings["memory.memsw.limit_in_bytes"] = str(limits.memory_bytes)  # memory and swap together: no swap
    if limits.pids:
        settings["pids.max"] = str(limits.pids)
    return settings


def _v2_settings(limits: ContainerLimits) -> dict[str, str]:
    settings = {}
    if limits.cpu_shares:
        settings["cpu.weight"] = str(weight(limits.cpu_shares))
    if limits.cpu_quota:
        settings["cpu.max"] = f"{limits.cpu_quota} {limits.cpu_period}"
    if limits.memory_bytes:
        settings["memory.max"] = str(limits.memory_bytes)
        settings["memory.swap.max"] = "0"
    if limits.pids:
        settings["pids.max"] = str(limits.pids)
    return settings


def weight(shares: int) -> int:
    """Shares of 2 to 262144 as a weight of 1 to 10000, on the straight line that the OCI runtimes use."""
    bounded = min(max(shares, 2), 262144)
    return 1 + (bounded - 2) * 9999 // 262142
