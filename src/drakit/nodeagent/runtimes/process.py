"""The process runtime: each container is a process group of this machine, with its devices applied.

In:  the contract's calls. Images are not used: a container is its command.
Out: processes with the rights of whoever started the agent, under a shim each; in a mount namespace of their own where
     the kernel lets us.

It is meant for one's own machine. So it does not start for an API server that others can reach, unless told to.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import msgspec

import drakit
from drakit.base.clock import Clock
from drakit.nodeagent.runtimes.cdi import CdiEdits, CdiRegistry
from drakit.nodeagent.runtimes.cgroups import NO_CGROUP, Cgroup, Cgroups
from drakit.nodeagent.runtimes.contract import (
    ContainerConfig,
    ContainerLimits,
    DeviceUnresolved,
    LimitsRefused,
    RuntimeRefusal,
    RuntimeUnsuitable,
    RuntimeVersion,
)
from drakit.nodeagent.runtimes.shim.kernel import sessions
from drakit.nodeagent.runtimes.shim.supervise import boot_id
from drakit.nodeagent.runtimes.supervised.container import Supervised, shim_argv
from drakit.nodeagent.runtimes.supervised.processes import ProcessName
from drakit.nodeagent.runtimes.supervised.records import ContainerRecord
from drakit.nodeagent.runtimes.supervised.runtime import SupervisedRuntime, new_id

_PASSED_ON = ("PATH", "HOME", "LANG", "TZ")
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class ProcessRuntime(SupervisedRuntime):
    """Keeps the Runtime contract.

    `api_addresses`: where the API server listens, as host names or addresses. `allow_remote`: start although one of
    them can be reached from elsewhere. `namespace`: `mount`, `user` or `none`; by default what the kernel lets us have.
    """

    def __init__(
        self,
        root: Path,
        *,
        clock: Clock,
        cdi: CdiRegistry,
        cgroups: Cgroups,
        api_addresses: Sequence[str] = (),
        allow_remote: bool = False,
        namespace: str = "",
        host_ip: str = "127.0.0.1",
        new_id: Callable[[], str] = new_id,
        boot: Callable[[], str] = boot_id,
    ) -> None:
        super().__init__(root, clock=clock, cgroups=cgroups, host_ip=host_ip, new_id=new_id, boot=boot)
        self._cdi = cdi
        self._api_addresses = tuple(api_addresses)
        self._allow_remote = allow_remote
        self._namespace = namespace

    async def __aenter__(self) -> Self:
        refuse_remote(self._api_addresses, allowed=self._allow_remote)
        if not self._namespace:
            self._namespace = await possible_namespace()
        return await super().__aenter__()

    async def version(self) -> RuntimeVersion:
        return RuntimeVersion(name="process", version=drakit.__version__)

    async def _launch_document(self, record: ContainerRecord, directory: Path) -> dict[str, Any]:
        config = record.config
        argv = [*config.command, *config.args]
        if not config.command:
            raise RuntimeRefusal(
                f'container "{config.name}" has no command: the process runtime uses no image that would have one',
                reason="CreateContainerConfigError",
            )
        edits = self._cdi.resolve(config.cdi_devices)
        mounts = self._mounts(config, edits)
        cgroup, rlimits = self._limits(record)
        sandbox = self._sandboxes[record.sandbox_id].config
        return {
            "argv": argv,
            "env": _environment(config, edits, sandbox.hostname or config.pod.name),
            "cwd": config.working_dir or str(directory / "work"),
            "namespace": self._namespace,
            "hostname": sandbox.hostname or config.pod.name,
            "hide": [],
            "scratch": str(directory / "scratch"),
            "mounts": mounts,
            "devices": self._devices(config, edits),
            "uid": config.run_as_user,
            "gid": config.run_as_group,
            "groups": edits.groups,
            "rlimits": rlimits,
            "cgroups": cgroup.procs,
            "oom_files": cgroup.oom,
            "oom_score_adj": config.limits.oom_score_adj,
            "log": record.log_path,
            "tty": config.tty,
            "stdin": config.stdin,
            "stdin_once": config.stdin_once,
            "hooks": [asdict(hook) for hook in edits.hooks],
            "state": {"ociVersion": "1.0.2", "id": record.id, "bundle": str(directory), "annotations": {}},
        }

    def _mounts(self, config: ContainerConfig, edits: CdiEdits) -> list[dict[str, Any]]:
        mounts = [
            {
                "source": mount.host_path,
                "target": mount.container_path,
                "read_only": mount.read_only,
                "propagation": mount.propagation,
            }
            for mount in config.mounts
            if mount.needed or self._namespace != "none"
        ]
        for mount in edits.mounts:
            if not Path(mount.host_path).exists():
                raise DeviceUnresolved(f"CDI mount {mount.container_path}: {mount.host_path} is not on this node")
            mounts.append({"source": mount.host_path, "target": mount.container_path, "read_only": mount.read_only})
        # A writable mount of a path onto itself is there without any mount.
        needless = [mount for mount in mounts if mount["source"] != mount["target"] or mount["read_only"]]
        if needless and self._namespace == "none":
            raise RuntimeRefusal(
                f'container "{config.name}" mounts {needless[0]["target"]}: '
                "the kernel lets this agent make no mount namespace"
            )
        return mounts

    def _devices(self, config: ContainerConfig, edits: CdiEdits) -> list[dict[str, Any]]:
        for node in edits.device_nodes:
            if not Path(node.host_path).exists() and not node.type:
                raise DeviceUnresolved(f"CDI device node {node.path}: {node.host_path} is not on this node")
            if self._namespace == "none" and not Path(node.path).exists():
                raise DeviceUnresolved(
                    f'container "{config.name}": device node {node.path} takes a mount namespace, which the kernel '
                    "does not let this agent make"
                )
        return [asdict(node) for node in edits.device_nodes]

    def _limits(self, record: ContainerRecord) -> tuple[Cgroup, dict[str, int]]:
        """A cgroup; without the right to one, memory is held by a limit of the process, and a cpu limit is refused."""
        limits, pod = record.config.limits, self._sandboxes[record.sandbox_id].config.limits
        try:
            return self._cgroups.make(record.cgroup, limits, pod=pod), {}
        except LimitsRefused:
            if limits.cpu_quota or limits.pids or pod.needs_cgroup:
                raise
            return NO_CGROUP, _process_limits(limits)

    def _exec_argv(self, container: Supervised, command: Sequence[str], *, tty: bool) -> list[str]:
        launch = msgspec.json.decode((container.directory / "launch.json").read_bytes())
        running = container.running
        request = {
            "pid": 0 if running is None else running.pid.pid,
            "argv": list(command),
            "env": launch["env"] | ({"TERM": "xterm"} if tty else {}),
            "cwd": launch["cwd"],
            "uid": launch["uid"],
            "gid": launch["gid"],
            "cgroups": launch["cgroups"],
            "tty": tty,
        }
        return shim_argv("enter", msgspec.json.encode(request).decode())

    def _signal(self, container: Supervised, number: signal.Signals) -> None:
        if container.running is not None:
            ProcessName(container.running.pid.pid, container.running.pid.start).send(number, group=True)

    async def _end_rest(self, container: Supervised) -> None:
        """Kill what is left of the session: the main process dies with its shim, its children may still run."""
        # After a reboot the session id belongs to other processes.
        if container.running is not None and container.running.boot == self._boot:
            # A program with the rights of another user (setuid) does not die by itself.
            ProcessName(container.running.pid.pid, container.running.pid.start).send(signal.SIGKILL)
            _kill_session(container.running.pid.pid)

    async def _clean_up(self, container: Supervised) -> None:
        await self._cgroups.remove(container.record.cgroup, self._clock)


def _kill_session(session: int) -> None:
    """Processes name their session: no stranger can be in it while one of them lives."""
    for pid, leader in sessions().items():
        if leader == session and pid != session:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def refuse_remote(addresses: Sequence[str], *, allowed: bool) -> None:
    """Pods of the process runtime run as us: whoever can make pods can do what we can."""
    remote = [address for address in addresses if not _is_loopback(address)]
    if remote and not allowed:
        raise RuntimeUnsuitable(
            f"the process runtime runs pods with the rights of this user, and the API server listens on {remote[0]}, "
            "which others may reach; use another runtime, or allow it with --allow-remote-api"
        )


def _is_loopback(address: str) -> bool:
    host = address.strip("[]")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.startswith("/")  # a Unix socket


async def possible_namespace() -> str:
    """`mount`, `user` or `none`: what the kernel lets this user have, tried out in a process of its own."""
    process = await asyncio.create_subprocess_exec(*shim_argv("probe"), stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    return output.decode().strip() or "none"


def _environment(config: ContainerConfig, edits: CdiEdits, hostname: str) -> dict[str, str]:
    """Little of the agent's own environment: it may hold what is no pod's business."""
    base = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    base.setdefault("PATH", _DEFAULT_PATH)
    base["HOSTNAME"] = hostname
    if config.tty:
        base["TERM"] = "xterm"
    return base | dict(config.env) | edits.env


def _process_limits(limits: ContainerLimits) -> dict[str, int]:
    return {"data": limits.memory_bytes} if limits.memory_bytes else {}
