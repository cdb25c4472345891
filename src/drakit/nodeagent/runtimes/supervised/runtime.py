"""Containers that run under a shim each: what the process and the crun runtime share.

In:  the contract's calls.
Out: shims, each with its container; records on disk. Entering finds earlier shims by pid and start time.

What differs is how a container is started: a subclass turns a ContainerConfig into a launch document.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shutil
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from drakit.base.clock import Clock
from drakit.base.errors import DeadlineExceeded
from drakit.nodeagent.files import tree_size
from drakit.nodeagent.runtimes.cgroups import Cgroups
from drakit.nodeagent.runtimes.changes import PodChanges
from drakit.nodeagent.runtimes.contract import (
    ByteStream,
    ContainerConfig,
    ContainerInfo,
    ContainerState,
    ContainerUnknown,
    ContainerUsage,
    ExecResult,
    ExecStreams,
    RuntimeFailure,
    RuntimeRefusal,
    RuntimeVersion,
    SandboxConfig,
    SandboxInfo,
    SandboxNotReady,
    SandboxState,
)
from drakit.nodeagent.runtimes.forwards import connect_local
from drakit.nodeagent.runtimes.shim.supervise import boot_id
from drakit.nodeagent.runtimes.supervised import records
from drakit.nodeagent.runtimes.supervised.attachments import Attachment, reopen_log
from drakit.nodeagent.runtimes.supervised.container import Supervised, signal_named, start_shim
from drakit.nodeagent.runtimes.supervised.execs import ExecSession, TerminalSession
from drakit.nodeagent.runtimes.supervised.processes import ProcessName, ended, tree_memory
from drakit.nodeagent.runtimes.supervised.records import ContainerRecord, ExitFile, RunningFile, SandboxRecord


def new_id() -> str:
    return secrets.token_hex(16)


class SupervisedRuntime(ABC):
    """The part of the Runtime contract that does not depend on what a container is."""

    def __init__(
        self,
        root: Path,
        *,
        clock: Clock,
        cgroups: Cgroups,
        host_ip: str = "127.0.0.1",
        new_id: Callable[[], str] = new_id,
        boot: Callable[[], str] = boot_id,
    ) -> None:
        """`host_ip`: the node's address. Pods share its network, so it is theirs too."""
        self._root = root
        self._clock = clock
        self._new_id = new_id
        self._boot = boot()
        self._host_ip = host_ip
        self._cgroups = cgroups
        self._sandboxes: dict[str, SandboxRecord] = {}
        self._containers: dict[str, Supervised] = {}
        self._changes = PodChanges()

    # -- what a subclass says

    @abstractmethod
    async def version(self) -> RuntimeVersion: ...

    @abstractmethod
    async def _launch_document(self, record: ContainerRecord, directory: Path) -> dict[str, Any]:
        """How the shim starts this container. Raises RuntimeRefusal."""

    @abstractmethod
    def _exec_argv(self, container: Supervised, command: Sequence[str], *, tty: bool) -> list[str]: ...

    @abstractmethod
    def _signal(self, container: Supervised, number: signal.Signals) -> None: ...

    @abstractmethod
    async def _clean_up(self, container: Supervised) -> None:
        """After the container's end, before its directory goes."""

    @abstractmethod
    async def _end_rest(self, container: Supervised) -> None:
        """End what is left of a container whose shim died without writing exit.json."""

    def _stop_signal(self, container: Supervised) -> str:
        """Its name; empty for the usual one."""
        return container.record.config.stop_signal

    # -- lifetime

    async def __aenter__(self) -> Self:
        (self._root / "sandboxes").mkdir(parents=True, exist_ok=True)
        (self._root / "containers").mkdir(exist_ok=True)
        for path in sorted((self._root / "sandboxes").glob("*.json")):
            if (sandbox := records.read(path, SandboxRecord)) is not None:
                # A reboot ended every process, whatever the record says.
                is_over = sandbox.boot != self._boot
                self._sandboxes[sandbox.id] = _stopped(sandbox) if is_over else sandbox
        for directory in sorted((self._root / "containers").iterdir()):
            await self._adopt(directory)
        # Only after all containers are adopted: what is not known by now belongs to nobody.
        self._cgroups.sweep({container.record.cgroup for container in self._containers.values()})
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        watches = [container.watch for container in self._containers.values() if container.watch is not None]
        for watch in watches:
            watch.cancel()
        await asyncio.gather(*watches, return_exceptions=True)
        for container in self._containers.values():
            await container.close_sessions()
        self._changes.close()
        self._cgroups.leave()

    async def _adopt(self, directory: Path) -> None:
        """Find a container again: running, exited, or gone without a word (a reboot, a killed shim)."""
        record = records.read(directory / "container.json", ContainerRecord)
        if record is None:
            shutil.rmtree(directory, ignore_errors=True)
            return
        container = self._containers[record.id] = Supervised(record, directory, self._clock)
        await container.await_shim()
        container.read()
        if container.state is ContainerState.RUNNING:
            self._watch(container)
        elif container.exit is None and container.may_have_run:  # its shim died before it could say anything
            container.lose()

    # -- sandboxes

    async def ensure_image(self, image: str, *, pull_policy: str = "IfNotPresent") -> str:  # noqa: ARG002
        return ""

    async def run_sandbox(self, sandbox: SandboxConfig) -> str:
        if any((s.config.pod, s.config.attempt) == (sandbox.pod, sandbox.attempt) for s in self._sandboxes.values()):
            raise RuntimeFailure(f"pod {sandbox.pod.uid} has a sandbox of attempt {sandbox.attempt} already")
        record = SandboxRecord(id=self._new_id(), config=sandbox, created=self._clock.now(), boot=self._boot)
        try:
            self._keep(record)
        except OSError as error:
            raise RuntimeFailure(f"the sandbox of pod {sandbox.pod.uid} cannot be kept: {error}") from None
        return record.id

    async def stop_sandbox(self, sandbox_id: str) -> None:
        sandbox = self._sandboxes.get(sandbox_id)
        if sandbox is None:
            return
        await asyncio.gather(*(container.kill() for container in self._of_sandbox(sandbox_id)))
        if sandbox.state is SandboxState.READY:
            self._keep(_stopped(sandbox))

    async def remove_sandbox(self, sandbox_id: str) -> None:
        await self.stop_sandbox(sandbox_id)
        for container in self._of_sandbox(sandbox_id):
            await self.remove_container(container.record.id)
        if self._sandboxes.pop(sandbox_id, None) is not None:
            self._sandbox_file(sandbox_id).unlink(missing_ok=True)

    async def sandboxes(self) -> list[SandboxInfo]:
        return [
            SandboxInfo(
                id=record.id,
                pod=record.config.pod,
                attempt=record.config.attempt,
                state=record.state,
                created=record.created,
                ip=self._host_ip if record.state is SandboxState.READY else "",
                labels=record.config.labels,
                annotations=record.config.annotations,
            )
            for record in self._sandboxes.values()
        ]

    # -- containers

    async def create_container(self, sandbox_id: str, config: ContainerConfig) -> str:
        sandbox = self._sandboxes.get(sandbox_id)
        if sandbox is None or sandbox.state is SandboxState.NOT_READY:
            raise SandboxNotReady(f"sandbox {sandbox_id} of pod {config.pod.uid} is not ready")
        container_id = self._new_id()
        directory = self._root / "containers" / container_id
        record = ContainerRecord(
            id=container_id,
            sandbox_id=sandbox_id,
            config=config,
            created=self._clock.now(),
            log_path=str(Path(sandbox.config.log_directory or directory) / (config.log_path or "container.log")),
            image_ref=await self.ensure_image(config.image),
            cgroup=f"pod{config.pod.uid}/{container_id}",
        )
        try:
            (directory / "work").mkdir(parents=True)
            (directory / "scratch").mkdir()
            launch = await self._launch_document(record, directory) | {"boot": self._boot}
            (directory / "launch.json").write_bytes(msgspec.json.encode(launch))
            # Last: a directory without it is half-made, and the next agent removes it.
            records.write(directory / "container.json", record)
        except BaseException as error:
            await self._clean_up(Supervised(record, directory, self._clock))
            shutil.rmtree(directory, ignore_errors=True)
            if isinstance(error, OSError):
                raise RuntimeFailure(f"container {config.name} cannot be made: {error}") from None
            raise
        self._containers[container_id] = Supervised(record, directory, self._clock)
        return container_id

    async def start_container(self, container_id: str) -> None:
        container = self._known(container_id)
        if container.state is not ContainerState.CREATED:
            raise RuntimeFailure(f"container {container_id} is {container.state}, not created")
        answer = await start_shim(container.directory)
        if answer == "ok":
            container.running = records.read(container.directory / "running.json", RunningFile)
            self._watch(container)
            return
        container.read()
        if container.exit is None:
            container.lose(error=answer)
        raise RuntimeRefusal(answer or "the container's shim did not start", reason="RunContainerError")

    async def stop_container(self, container_id: str, *, grace: float) -> None:
        container = self._containers.get(container_id)
        if container is None or container.state is ContainerState.EXITED:
            return
        if container.state is ContainerState.RUNNING:
            self._signal(container, signal_named(self._stop_signal(container)))
            with contextlib.suppress(DeadlineExceeded):
                await container.wait(grace)
                return
        await container.kill()

    async def remove_container(self, container_id: str) -> None:
        container = self._containers.get(container_id)
        if container is None:
            return
        # One that never ran gets no end: an agent that dies right here would leave a pod that has failed.
        if container.state is not ContainerState.CREATED:
            await container.kill()
        await self._clean_up(container)
        # First the record: a directory without it is removed by whoever finds it.
        (container.directory / "container.json").unlink(missing_ok=True)
        await asyncio.to_thread(shutil.rmtree, container.directory, ignore_errors=True)
        self._containers.pop(container_id, None)

    async def containers(self) -> list[ContainerInfo]:
        return [container.info() for container in self._containers.values()]

    def changes(self) -> PodChanges:
        return self._changes

    # -- streams

    async def exec(
        self, container_id: str, command: Sequence[str], *, tty: bool = False, stdin: bool = False
    ) -> ExecStreams:
        container = self._running(container_id)
        if not command:
            raise RuntimeRefusal("exec: no command")
        argv = self._exec_argv(container, command, tty=tty)
        session = await (TerminalSession.start(argv) if tty else ExecSession.start(argv, stdin=stdin))
        container.sessions.add(session)
        return session

    async def exec_sync(self, container_id: str, command: Sequence[str], *, limit: float = 0) -> ExecResult:
        container = self._running(container_id)
        session = await ExecSession.start(self._exec_argv(container, command, tty=False), stdin=False)
        container.sessions.add(session)
        try:
            async with asyncio.timeout(limit or None):
                out, err = await asyncio.gather(_all(session.stdout), _all(session.stderr))
                return ExecResult(await session.wait(), out, err)
        except TimeoutError:
            raise DeadlineExceeded(f'command "{" ".join(command)}" did not end within {limit:g} s') from None
        finally:
            container.sessions.discard(session)
            await session.close()

    async def attach(self, container_id: str, *, stdin: bool = False) -> ExecStreams:
        container = self._running(container_id)
        return await Attachment.open(container.directory, stdin=stdin and container.record.config.stdin)

    async def usage(self, container_id: str) -> ContainerUsage:
        container = self._running(container_id)
        memory = self._cgroups.memory_of(container.record.cgroup)
        # Without a cgroup: add up what the processes below the shim have resident.
        if memory is None and container.running is not None:
            memory = await asyncio.to_thread(tree_memory, container.running.shim.pid)
        places = (container.directory, Path(container.record.log_path).parent)
        disk = sum([await asyncio.to_thread(tree_size, each) for each in places])
        return ContainerUsage(memory or 0, disk)

    async def reopen_log(self, container_id: str) -> None:
        await reopen_log(self._running(container_id).directory)

    async def port_forward(self, sandbox_id: str, port: int) -> ByteStream:
        sandbox = self._sandboxes.get(sandbox_id)
        if sandbox is None or sandbox.state is SandboxState.NOT_READY:
            raise SandboxNotReady(f"sandbox {sandbox_id} is not ready")
        return await connect_local(port)

    # -- inside

    def _sandbox_file(self, sandbox_id: str) -> Path:
        return self._root / "sandboxes" / f"{sandbox_id}.json"

    def _keep(self, sandbox: SandboxRecord) -> None:
        records.write(self._sandbox_file(sandbox.id), sandbox)
        self._sandboxes[sandbox.id] = sandbox

    def _of_sandbox(self, sandbox_id: str) -> list[Supervised]:
        return [container for container in self._containers.values() if container.record.sandbox_id == sandbox_id]

    def _known(self, container_id: str) -> Supervised:
        container = self._containers.get(container_id)
        if container is None:
            raise ContainerUnknown(f"there is no container {container_id}")
        return container

    def _running(self, container_id: str) -> Supervised:
        container = self._known(container_id)
        if container.state is not ContainerState.RUNNING:
            raise RuntimeFailure(f"container {container_id} is not running")
        return container

    def _watch(self, container: Supervised) -> None:
        container.watch = asyncio.create_task(self._until_over(container))

    async def _until_over(self, container: Supervised) -> None:
        running = container.running
        if running is not None and running.boot == self._boot:
            await ended(ProcessName(running.shim.pid, running.shim.start), self._clock)
        # Read after the shim is gone: exit.json is the last thing that it writes.
        end = records.read(container.directory / "exit.json", ExitFile)
        if end is None:
            await self._end_rest(container)
        # Before `over` is set: whoever waits for the end finds no exec running in the container.
        await container.close_sessions()
        if end is None:
            container.lose()
        container.exit = container.exit or end
        container.over.set()
        # Last: the reader of this change lists containers, and must see the new state.
        self._changes.tell(container.record.config.pod.uid)


def _stopped(sandbox: SandboxRecord) -> SandboxRecord:
    return msgspec.structs.replace(sandbox, state=SandboxState.NOT_READY)


async def _all(reader: Any) -> bytes:
    pieces = []
    while piece := await reader.read():
        pieces.append(piece)
    return b"".join(pieces)
