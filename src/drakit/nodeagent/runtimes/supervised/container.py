"""One container under a shim: its files, its state, its end.

In:  a container's directory.
Out: what became of it. Signals and the shim's lock tell a shim that lives from one that is gone.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import sys
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import drakit
from drakit.base.clock import Clock
from drakit.base.errors import DeadlineExceeded
from drakit.nodeagent.runtimes.contract import ContainerInfo, ContainerState, RuntimeFailure
from drakit.nodeagent.runtimes.lastwords import last_words
from drakit.nodeagent.runtimes.supervised import records
from drakit.nodeagent.runtimes.supervised.execs import ExecSession, TerminalSession
from drakit.nodeagent.runtimes.supervised.pipes import ReadPipe
from drakit.nodeagent.runtimes.supervised.processes import ProcessName
from drakit.nodeagent.runtimes.supervised.records import ContainerRecord, ExitFile, RunningFile

KILLED = 137
SHIM_SECONDS = 10.0
"""How long a shim may take to end its container."""
START_SECONDS = 60.0
"""How long a shim may take to start one. One that is given up too soon starts a container that nobody knows."""
_LOOK_AGAIN = 0.02


@dataclass(slots=True)
class Supervised:
    """`over` is set once the container has exited; `exit` says how."""

    record: ContainerRecord
    directory: Path
    clock: Clock
    running: RunningFile | None = None
    exit: ExitFile | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)
    watch: asyncio.Task[None] | None = None
    words: str | None = None
    """The termination message, once it has been read."""
    sessions: set[ExecSession | TerminalSession] = field(default_factory=set)

    @property
    def state(self) -> ContainerState:
        if self.exit is not None:
            return ContainerState.EXITED
        return ContainerState.RUNNING if self.running is not None else ContainerState.CREATED

    def read(self) -> None:
        """What its shim has written."""
        # exit.json is the stronger one: running.json stays on disk after the end.
        self.exit = records.read(self.directory / "exit.json", ExitFile)
        self.running = records.read(self.directory / "running.json", RunningFile)
        if self.exit is not None:
            self.over.set()

    async def await_shim(self) -> None:
        """Wait for a shim that is just starting, left by an agent that was killed: it will write one of its files."""
        waited = 0.0
        while _is_locked(self.directory / "lock") and waited < START_SECONDS:
            if any((self.directory / name).exists() for name in ("running.json", "exit.json")):
                return
            await self.clock.sleep(_LOOK_AGAIN)
            waited += _LOOK_AGAIN

    @property
    def may_have_run(self) -> bool:
        """Whether a shim has come to start the program, or may still do so."""
        return (self.directory / "launching").exists() or _is_locked(self.directory / "lock")

    def finish(self, end: ExitFile) -> None:
        """An end that no shim has written."""
        records.write(self.directory / "exit.json", end)
        self.exit = end
        self.over.set()

    def lose(self, *, error: str = "") -> None:
        """Record an end that nobody saw. The kernel kills the process of a container when its shim dies."""
        message = error or "The container could not be located when the agent looked for it"
        self.finish(ExitFile(KILLED, self.clock.now(), error=message, reason="ContainerStatusUnknown"))

    async def wait(self, seconds: float) -> None:
        """Raises DeadlineExceeded when it has not exited by then."""
        waiter = asyncio.create_task(self.over.wait())
        timer = asyncio.ensure_future(self.clock.sleep(seconds))
        try:
            await asyncio.wait({waiter, timer}, return_when=asyncio.FIRST_COMPLETED)
            if not self.over.is_set():
                raise DeadlineExceeded(f"container {self.record.id} did not end within {seconds:g} s")
        finally:
            waiter.cancel()
            timer.cancel()
            await asyncio.gather(waiter, timer, return_exceptions=True)

    async def kill(self) -> None:
        """The shim kills every process of the container; else it is killed itself, and takes the container along."""
        if self.state is ContainerState.EXITED:
            return
        if self.running is None:
            self.finish(ExitFile(KILLED, self.clock.now()))
            return
        shim = ProcessName(self.running.shim.pid, self.running.shim.start)
        shim.send(signal.SIGTERM)
        try:
            await self.wait(SHIM_SECONDS)
        except DeadlineExceeded:
            # The watch of the shim sees it die, and sets `over`.
            shim.send(signal.SIGKILL)
            await self.over.wait()

    async def close_sessions(self) -> None:
        sessions, self.sessions = self.sessions, set()
        await asyncio.gather(*(session.close() for session in sessions), return_exceptions=True)

    def info(self) -> ContainerInfo:
        record, end = self.record, self.exit
        return ContainerInfo(
            id=record.id,
            sandbox_id=record.sandbox_id,
            pod=record.config.pod,
            name=record.config.name,
            attempt=record.config.attempt,
            state=self.state,
            created=record.created,
            started=_started(self.running, end),
            finished=None if end is None else end.finished,
            exit_code=0 if end is None else end.code,
            reason="" if end is None else _reason(end),
            message="" if end is None else end.error or self._last_words(end),
            log_path=record.log_path,
            image=record.config.image,
            image_ref=record.image_ref,
            labels=record.config.labels,
            annotations=record.config.annotations,
        )

    def _last_words(self, end: ExitFile) -> str:
        """The termination message. Read once: after the end nobody writes it any more."""
        if self.words is None:
            config = self.record.config
            self.words = last_words(
                config.termination_file,
                exit_code=end.code,
                log_path=self.record.log_path,
                log_on_error=config.log_on_error,
            )
        return self.words


async def start_shim(directory: Path) -> str:
    """Returns its answer. The lock goes with the shim: whoever can take it knows that the shim is gone."""
    # A pipe of our own: the shim lets go of it a moment after its answer, and nobody waits for that.
    async with ReadPipe() as output:
        process = await _start_shim(directory, output)
        # One line, not all: the shim goes on. One that failed leaves nobody behind.
        answer = await output.reader.readline()
        if await process.wait():
            answer += await output.reader.read()
    return answer.decode("utf-8", "replace").strip()


async def _start_shim(directory: Path, output: ReadPipe) -> asyncio.subprocess.Process:
    lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        # Taken here and inherited by the shim: there is no moment in which a started shim does not hold it.
        fcntl.flock(lock, fcntl.LOCK_EX)
        return await asyncio.create_subprocess_exec(
            *shim_argv("supervise", str(directory), str(lock)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output.theirs,
            stderr=asyncio.subprocess.STDOUT,
            pass_fds=(lock,),
            start_new_session=True,
        )
    except OSError as error:
        raise RuntimeFailure(f"the container's shim cannot be started: {error}") from None
    finally:
        os.close(lock)
        output.started()


def shim_argv(*arguments: str) -> list[str]:
    """A small interpreter: the standard library and drakit alone, no site packages, no environment."""
    source = str(Path(drakit.__file__).parents[1])
    start = "import sys; sys.path.insert(0, sys.argv.pop(1)); from drakit.nodeagent.runtimes.shim.main import main; "
    return [sys.executable, "-I", "-S", "-c", start + "main(sys.argv[1:])", source, *arguments]


def signal_named(name: str) -> signal.Signals:
    """SIGTERM for a name that is empty or unknown."""
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


def _started(running: RunningFile | None, end: ExitFile | None) -> datetime | None:
    """startedAt. For a program that could not be run it is finishedAt, as a kubelet shows it."""
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
