"""The crun runtime: real containers, from a root file system or an OCI layout on this node.

In:  the contract's calls.
Out: OCI bundles that crun runs under a shim each. Pods share the node's network; each container has its own processes,
     mounts, host name and IPC.

crun makes no cgroup here: the agent does where it may, and the shim joins it before it starts crun.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec

from drakit.base.clock import Clock
from drakit.nodeagent.runtimes.cdi import CdiRegistry
from drakit.nodeagent.runtimes.cgroups import Cgroups
from drakit.nodeagent.runtimes.contract import ImageUnavailable, RuntimeRefusal, RuntimeUnsuitable, RuntimeVersion
from drakit.nodeagent.runtimes.crun.images import ImageStore
from drakit.nodeagent.runtimes.crun.ocispec import oci_spec
from drakit.nodeagent.runtimes.shim.kernel import parents
from drakit.nodeagent.runtimes.shim.supervise import boot_id
from drakit.nodeagent.runtimes.supervised.container import Supervised, shim_argv
from drakit.nodeagent.runtimes.supervised.records import ContainerRecord
from drakit.nodeagent.runtimes.supervised.runtime import SupervisedRuntime, new_id

_LOOK_AGAIN = 0.005
_UNIFIED = "/sys/fs/cgroup/unified"
"""On a machine with both versions crun 1.8 refuses to run until this mount is out of its sight."""


class CrunRuntime(SupervisedRuntime):
    """Keeps the Runtime contract. `program` is crun's path."""

    def __init__(
        self,
        root: Path,
        *,
        clock: Clock,
        cdi: CdiRegistry,
        cgroups: Cgroups,
        images: ImageStore,
        program: str = "crun",
        host_ip: str = "127.0.0.1",
        new_id: Callable[[], str] = new_id,
        boot: Callable[[], str] = boot_id,
    ) -> None:
        super().__init__(root, clock=clock, cgroups=cgroups, host_ip=host_ip, new_id=new_id, boot=boot)
        self._cdi = cdi
        self._images = images
        self._program = program
        self._version = ""
        self._has_overlay = False

    async def __aenter__(self) -> Self:
        if os.geteuid() != 0:
            raise RuntimeUnsuitable("the crun runtime makes namespaces, mounts and device nodes: it must run as root")
        found = shutil.which(self._program)
        if found is None:
            raise RuntimeUnsuitable(f"there is no program {self._program} on this machine; install crun")
        self._program = found
        self._version = (await self._output(found, "--version")).partition("\n")[0].rpartition(" ")[2]
        self._root.mkdir(parents=True, exist_ok=True)
        self._has_overlay = await self._try_overlay()
        return await super().__aenter__()

    async def version(self) -> RuntimeVersion:
        return RuntimeVersion(name="crun", version=self._version)

    async def ensure_image(self, image: str, *, pull_policy: str = "IfNotPresent") -> str:
        """Nothing is pulled, so every policy but Always means the same, and Always is what is here."""
        try:
            return (await asyncio.to_thread(self._images.find, image)).reference
        except ImageUnavailable as error:
            if pull_policy == "Never":
                raise RuntimeRefusal(str(error), reason="ErrImageNeverPull") from None
            raise

    async def _launch_document(self, record: ContainerRecord, directory: Path) -> dict[str, Any]:
        config = record.config
        image = await asyncio.to_thread(self._images.find, config.image)
        sandbox = self._sandboxes[record.sandbox_id].config
        edits = self._cdi.resolve(config.cdi_devices)
        target = self._target(config.target) if config.target else 0
        spec = oci_spec(config, image, edits, hostname=sandbox.hostname or config.pod.name, target=target)
        bundle = directory / "bundle"
        overlay = await self._root_file_system(image.root, bundle)
        (bundle / "config.json").write_bytes(msgspec.json.encode(spec))
        cgroup = self._cgroups.make(record.cgroup, config.limits, pod=sandbox.limits)
        return {
            "argv": [*self._crun(), "run", "--bundle", str(bundle), "--pid-file", str(directory / "pid"), record.id],
            "env": {"PATH": os.environ.get("PATH", os.defpath)},
            "cwd": str(directory),
            "namespace": "mount",
            "hostname": "",
            "hide": [_UNIFIED],
            "overlay": overlay,
            "scratch": str(directory / "scratch"),
            "mounts": [],
            "devices": [],
            "uid": None,
            "gid": None,
            "groups": [],
            "rlimits": {},
            "cgroups": cgroup.procs,
            "oom_files": cgroup.oom,
            "oom_score_adj": config.limits.oom_score_adj,
            "log": record.log_path,
            "tty": config.tty,
            "stdin": config.stdin,
            "stdin_once": config.stdin_once,
            "hooks": [],
            "state": {},
        }

    def _target(self, container_id: str) -> int:
        """The process of a container that runs."""
        container = self._known(container_id)
        pid = self._pid(container)
        if pid is None:
            raise RuntimeRefusal(f'target container "{container.record.config.name}" does not run')
        return pid

    async def _root_file_system(self, image: Path, bundle: Path) -> dict[str, str] | None:
        """A layer of its own over the image's files; a copy of them where there is no overlay."""
        target = bundle / "rootfs"
        if not self._has_overlay:
            await asyncio.to_thread(_copy, image, target)
            return None
        for path in (target, bundle / "upper", bundle / "work"):
            path.mkdir(parents=True)
        return {
            "lowerdir": str(image),
            "upperdir": str(bundle / "upper"),
            "workdir": str(bundle / "work"),
            "target": str(target),
        }

    async def start_container(self, container_id: str) -> None:
        """crun writes its pid file once the container runs; without one, what it wrote says why not."""
        await super().start_container(container_id)
        container = self._known(container_id)
        pid_file = container.directory / "pid"
        # crun reports the start by its pid file alone, so we poll for it.
        while not pid_file.exists() and not container.over.is_set():
            await self._clock.sleep(_LOOK_AGAIN)
        if not pid_file.exists():
            message = _last_line(Path(container.record.log_path))
            raise RuntimeRefusal(f"crun: {message}", reason="RunContainerError")

    def _crun(self) -> list[str]:
        return [self._program, "--root", str(self._root / "crun"), "--cgroup-manager=disabled"]

    def _exec_argv(self, container: Supervised, command: Sequence[str], *, tty: bool) -> list[str]:
        options = ["--tty"] if tty else []
        return self._hidden([*self._crun(), "exec", *options, container.record.id, *command])

    def _hidden(self, argv: list[str]) -> list[str]:
        return shim_argv("hide", msgspec.json.encode([_UNIFIED]).decode(), *argv)

    def _signal(self, container: Supervised, number: signal.Signals) -> None:
        if (pid := self._pid(container)) is not None:
            os.kill(pid, number)

    def _pid(self, container: Supervised) -> int | None:
        """The init process of the container: the child of crun that is named in the pid file. None: it has ended."""
        try:
            pid = int((container.directory / "pid").read_text())
        except (OSError, ValueError):
            return None
        running = container.running
        # The pid may belong to another process by now. A child of our crun process can only be the container.
        return pid if running is not None and parents().get(pid) == running.pid.pid else None

    def _stop_signal(self, container: Supervised) -> str:
        """The pod's, or else the image's."""
        own = container.record.config.stop_signal
        try:
            return own or self._images.find(container.record.config.image).stop_signal
        except (ImageUnavailable, RuntimeRefusal):
            return own

    async def _end_rest(self, container: Supervised) -> None:
        await self._delete(container)

    async def _clean_up(self, container: Supervised) -> None:
        if (self._root / "crun" / container.record.id).exists():
            await self._delete(container)
        await self._cgroups.remove(container.record.cgroup, self._clock)

    async def _delete(self, container: Supervised) -> None:
        """Delete the container, killing it if it runs. Safe after a reboot: crun compares pid and start time."""
        await self._output(*self._hidden([*self._crun(), "delete", "--force", container.record.id]))

    async def _output(self, *argv: str) -> str:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*argv, stdout=pipe, stderr=asyncio.subprocess.STDOUT)
        output, _ = await process.communicate()
        return output.decode("utf-8", "replace")

    async def _try_overlay(self) -> bool:
        trial = self._root / "overlay-trial"
        answer = await self._output(*shim_argv("probe-overlay", str(trial)))
        shutil.rmtree(trial, ignore_errors=True)
        return answer.strip() == "yes"


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return lines[-1].split(" ", 3)[-1] if lines else "the container did not start"


def _copy(source: Path, target: Path) -> None:
    """With owners and links as they are."""

    def one(file: str, place: str) -> str:
        shutil.copy2(file, place, follow_symlinks=False)
        status = os.lstat(file)
        os.lchown(place, status.st_uid, status.st_gid)
        return place

    shutil.copytree(source, target, symlinks=True, copy_function=one, ignore_dangling_symlinks=True)
