"""Containers that run under a shim each: what the process and the crun runtime share.

In:  the contract's calls.
Out: shims, each with its container; records on disk. Entering finds earlier shims by pid and start time.

What differs is how a container is started: a subclass turns a ContainerConfig into a launch document.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import secrets
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

import drakit
from drakit.base.clock import Clock
from drakit.base.errors import DeadlineExceeded
from drakit.nodeagent.runtimes import records
from drakit.nodeagent.runtimes.attachments import Attachment, reopen_log
from drakit.nodeagent.runtimes.changes import PodChanges
from drakit.nodeagent.runtimes.contract import (
    ByteStream,
    ContainerConfig,
    ContainerInfo,
    ContainerState,
    ContainerUnknown,
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
from drakit.nodeagent.runtimes.execs import ExecSession, TerminalSession
from drakit.nodeagent.runtimes.forwards import connect_local
from drakit.nodeagent.runtimes.processes import ProcessName, ended
from drakit.nodeagent.runtimes.records import ContainerRecord, ExitFile, RunningFile, SandboxRecord
from drakit.nodeagent.runtimes.shim.supervise import boot_id

KILLED = 137
_SHIM_SECONDS = 10.0
_LOOK_AGAIN = 0.02


@dataclass(slots=True)
class Supervised:
    """One container. `over` is set once it has exited, `exit` then says how."""

    record: ContainerRecord
    directory: Path
    running: RunningFile | None = None
    exit: ExitFile | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)
    watch: asyncio.Task[None] | None = None
    sessions: set[ExecSession | TerminalSession] = field(default_factory=set)

    @property
    def state(self) -> ContainerState:
        if self.exit is not None:
            return ContainerState.EXITED
        return ContainerState.RUNNING if self.running is not None else ContainerState.CREATED


class SupervisedRuntime:
    """The part of the Runtime contract that does not depend on what a container is."""

    def __init__(self, root: Path, *, clock: Clock, new_id: Callable[[], str] = lambda: secrets.token_hex(16)) -> None:
        self._root = root
        self._clock = clock
        self._new_id = new_id
        self._sandboxes: dict[str, SandboxRecord] = {}
        self._containers: dict[str, Supervised] = {}
        self._changes = PodChanges()

    # -- what a subclass says

    async def version(self) -> RuntimeVersion:
        raise NotImplementedError

    async def _launch_document(self, record: ContainerRecord, directory: Path) -> dict[str, Any]:
        """How the shim starts this container. Raises RuntimeRefusal."""
        raise NotImplementedError

    def _exec_argv(self, container: Supervised, command: Sequence[str], *, tty: bool) -> list[str]:
        raise NotImplementedError

    def _signal(self, container: Supervised, number: signal.Signals) -> None:
        raise NotImplementedError

    def _stop_signal(self, container: Supervised) -> str:
        """Its name; empty for the usual one."""
        return container.record.config.stop_signal

    async def _clean_up(self, container: Supervised) -> None:
        """After the container's end, before its directory goes."""
        raise NotImplementedError

    async def _end_rest(self, container: Supervised) -> None:
        """Its shim is gone without a word: end what may be left of the container."""
        raise NotImplementedError

    # -- lifetime

    async def __aenter__(self) -> Self:
        (self._root / "sandboxes").mkdir(parents=True, exist_ok=True)
        (self._root / "containers").mkdir(exist_ok=True)
        for path in sorted((self._root / "sandboxes").glob("*.json")):
            if (sandbox := records.read(path, SandboxRecord)) is not None:
                self._sandboxes[sandbox.id] = sandbox
        for directory in sorted((self._root / "containers").iterdir()):
            await self._adopt(directory)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        watches = [container.watch for container in self._containers.values() if container.watch is not None]
        for watch in watches:
            watch.cancel()
        await asyncio.gather(*watches, return_exceptions=True)
        for container in self._containers.values():
            await _close_sessions(container)
        self._changes.close()

    async def _adopt(self, directory: Path) -> None:
        """Find a container again: running, exited, or gone without a word (a reboot, a killed shim)."""
        record = records.read(directory / "container.json", ContainerRecord)
        if record is None:
            shutil.rmtree(directory, ignore_errors=True)
            return
        container = self._containers[record.id] = Supervised(record, directory)
        await self._await_shim(container)
        container.exit = records.read(directory / "exit.json", ExitFile)
        container.running = records.read(directory / "running.json", RunningFile)
        if container.exit is not None:
            container.over.set()
        elif container.running is not None:
            self._watch(container)
        elif (directory / "lock").exists():  # its shim died before it could say anything
            self._lost(container)

    async def _await_shim(self, container: Supervised) -> None:
        """An agent that was killed may have left a shim that is just starting: let it tell what came of it."""
        waited = 0.0
        while _is_locked(container.directory / "lock") and waited < _SHIM_SECONDS:
            if any((container.directory / name).exists() for name in ("running.json", "exit.json")):
                return
            await self._clock.sleep(_LOOK_AGAIN)
            waited += _LOOK_AGAIN

    # -- sandboxes

    async def ensure_image(self, image: str, *, pull_policy: str = "IfNotPresent") -> str:  # noqa: ARG002
        return ""

    async def run_sandbox(self, sandbox: SandboxConfig) -> str:
        if any((s.config.pod, s.config.attempt) == (sandbox.pod, sandbox.attempt) for s in self._sandboxes.values()):
            raise RuntimeFailure(f"pod {sandbox.pod.uid} has a sandbox of attempt {sandbox.attempt} already")
        record = SandboxRecord(id=self._new_id(), config=sandbox, created=self._clock.now())
        self._keep(record)
        return record.id

    async def stop_sandbox(self, sandbox_id: str) -> None:
        sandbox = self._sandboxes.get(sandbox_id)
        if sandbox is None:
            return
        await asyncio.gather(*(self._kill(container) for container in self._of_sandbox(sandbox_id)))
        if sandbox.state is SandboxState.READY:
            self._keep(msgspec.structs.replace(sandbox, state=SandboxState.NOT_READY))

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
        (directory / "work").mkdir(parents=True)
        (directory / "scratch").mkdir()
        try:
            launch = await self._launch_document(record, directory)
            (directory / "launch.json").write_bytes(msgspec.json.encode(launch))
            records.write(directory / "container.json", record)
        except BaseException:
            await self._clean_up(Supervised(record, directory))
            shutil.rmtree(directory, ignore_errors=True)
            raise
        self._containers[container_id] = Supervised(record, directory)
        return container_id

    async def start_container(self, container_id: str) -> None:
        container = self._known(container_id)
        if container.state is not ContainerState.CREATED:
            raise RuntimeFailure(f"container {container_id} is {container.state}, not created")
        answer = await self._start_shim(container.directory)
        container.exit = records.read(container.directory / "exit.json", ExitFile)
        if answer == "ok":
            container.exit = None  # it may have ended already; its watch finds out
            container.running = records.read(container.directory / "running.json", RunningFile)
            self._watch(container)
            return
        if container.exit is None:
            self._lost(container, error=answer)
        container.over.set()
        raise RuntimeRefusal(answer or "the container's shim did not start", reason="RunContainerError")

    async def stop_container(self, container_id: str, *, grace: float) -> None:
        container = self._containers.get(container_id)
        if container is None or container.state is ContainerState.EXITED:
            return
        if container.state is ContainerState.RUNNING:
            self._signal(container, _signal_named(self._stop_signal(container)))
            with contextlib.suppress(DeadlineExceeded):
                await self._wait(container, grace)
                return
        await self._kill(container)

    async def remove_container(self, container_id: str) -> None:
        container = self._containers.get(container_id)
        if container is None:
            return
        await self._kill(container)
        await self._clean_up(container)
        # First the record: a directory without it is removed by whoever finds it.
        (container.directory / "container.json").unlink(missing_ok=True)
        await asyncio.to_thread(shutil.rmtree, container.directory, ignore_errors=True)
        self._containers.pop(container_id, None)

    async def containers(self) -> list[ContainerInfo]:
        return [_info(container) for container in self._containers.values()]

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

    async def _start_shim(self, directory: Path) -> str:
        """Returns its answer. The lock goes with the shim: whoever can take it knows that the shim is gone."""
        lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            process = await asyncio.create_subprocess_exec(
                *shim_argv("supervise", str(directory), str(lock)),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                pass_fds=(lock,),
                start_new_session=True,
            )
        except OSError as error:
            raise RuntimeFailure(f"the container's shim cannot be started: {error}") from None
        finally:
            os.close(lock)
        output, _ = await process.communicate()
        return output.decode("utf-8", "replace").strip()

    def _watch(self, container: Supervised) -> None:
        container.watch = asyncio.create_task(self._until_over(container))

    async def _until_over(self, container: Supervised) -> None:
        running = container.running
        if running is not None and running.boot == boot_id():
            await ended(ProcessName(running.shim.pid, running.shim.start), self._clock)
        container.exit = records.read(container.directory / "exit.json", ExitFile)
        if container.exit is None:
            await self._end_rest(container)
            self._lost(container)
        await _close_sessions(container)
        container.over.set()
        self._changes.tell(container.record.config.pod.uid)

    def _lost(self, container: Supervised, *, error: str = "") -> None:
        """Nobody saw its end. Its process went with the shim, by the signal of a parent's death."""
        message = error or "The container could not be located when the agent looked for it"
        container.exit = ExitFile(
            code=KILLED, finished=self._clock.now(), error=message, reason="ContainerStatusUnknown"
        )
        records.write(container.directory / "exit.json", container.exit)
        container.over.set()

    async def _wait(self, container: Supervised, seconds: float) -> None:
        waiter = asyncio.create_task(container.over.wait())
        timer = asyncio.ensure_future(self._clock.sleep(seconds))
        try:
            await asyncio.wait({waiter, timer}, return_when=asyncio.FIRST_COMPLETED)
            if not container.over.is_set():
                raise DeadlineExceeded(f"container {container.record.id} did not end within {seconds:g} s")
        finally:
            waiter.cancel()
            timer.cancel()
            await asyncio.gather(waiter, timer, return_exceptions=True)

    async def _kill(self, container: Supervised) -> None:
        """The shim kills every process of the container; else it is killed itself, and takes the container along."""
        if container.state is ContainerState.EXITED:
            return
        if container.running is None:
            container.exit = ExitFile(code=KILLED, finished=self._clock.now())
            records.write(container.directory / "exit.json", container.exit)
            container.over.set()
            return
        shim = ProcessName(container.running.shim.pid, container.running.shim.start)
        shim.send(signal.SIGTERM)
        try:
            await self._wait(container, _SHIM_SECONDS)
        except DeadlineExceeded:
            shim.send(signal.SIGKILL)
            await container.over.wait()


def shim_argv(*arguments: str) -> list[str]:
    """A small interpreter: the standard library and drakit alone, no site packages, no environment."""
    source = str(Path(drakit.__file__).parents[1])
    start = "import sys; sys.path.insert(0, sys.argv.pop(1)); from drakit.nodeagent.runtimes.shim.main import main; "
    return [sys.executable, "-I", "-S", "-c", start + "main(sys.argv[1:])", source, *arguments]


def _signal_named(name: str) -> signal.Signals:
    name = name or "SIGTERM"
    try:
        return signal.Signals[name if name.startswith("SIG") else f"SIG{name}"]
    except KeyError:
        return signal.SIGTERM


def _is_locked(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


async def _close_sessions(container: Supervised) -> None:
    sessions, container.sessions = container.sessions, set()
    await asyncio.gather(*(session.close() for session in sessions), return_exceptions=True)


async def _all(reader: Any) -> bytes:
    pieces = []
    while piece := await reader.read():
        pieces.append(piece)
    return b"".join(pieces)


def _info(container: Supervised) -> ContainerInfo:
    record, running, end = container.record, container.running, container.exit
    return ContainerInfo(
        id=record.id,
        sandbox_id=record.sandbox_id,
        pod=record.config.pod,
        name=record.config.name,
        attempt=record.config.attempt,
        state=container.state,
        created=record.created,
        started=_started(running, end),
        finished=None if end is None else end.finished,
        exit_code=0 if end is None else end.code,
        reason="" if end is None else _reason(end),
        message="" if end is None else end.error,
        log_path=record.log_path,
        image=record.config.image,
        image_ref=record.image_ref,
        labels=record.config.labels,
        annotations=record.config.annotations,
    )


def _started(running: RunningFile | None, end: ExitFile | None) -> datetime | None:
    """A container whose program could not be run has its end for its start, as kubelets show it."""
    if running is not None:
        return running.started
    return None if end is None else end.finished


def _reason(end: ExitFile) -> str:
    if end.oom:
        return "OOMKilled"
    if end.reason:
        return end.reason
    if end.error:
        return "StartError"
    return "Completed" if end.code == 0 else "Error"
