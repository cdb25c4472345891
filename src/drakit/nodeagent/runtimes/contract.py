"""The contract of a runtime: what the agent may rely on, whichever runtime is behind it.

In:  sandboxes and containers as configurations, CDI device ids in the order in which they are to be applied.
Out: their state, a notice whenever a container changed by itself, and byte streams of exec, attach and port-forward.

A runtime is used as `async with`. Entering it finds again what an earlier agent left running; leaving it ends what
the runtime itself started (watchers, connections), never a container: only `stop_*` does.

Every method may be used by many tasks of one event loop at the same time; calls for one container are serial.
`stop_*` and `remove_*` are idempotent: what is stopped or gone already is a success.

RuntimeFailure             (Retryable) the runtime did not do it this time; try again with backoff
  ImageUnavailable         the image is not there (yet): ErrImagePull, then ImagePullBackOff
  SandboxNotReady          the sandbox has stopped: make another one
RuntimeRefusal             (Terminal) tell the pod with an event; it fails again until somebody changes something
  DeviceUnresolved         a CDI id that no spec file provides, or a spec file that is damaged or conflicts
  LimitsRefused            limits were asked for and no cgroup may be made
  ContainerUnknown         there is no such container or sandbox
RuntimeUnsuitable          (Terminal) this runtime cannot serve this node at all; the agent does not start
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import TracebackType
from typing import Protocol, Self

from drakit.base.errors import Retryable, Terminal


class RuntimeFailure(Retryable):
    """The runtime did not do it this time."""


class ImageUnavailable(RuntimeFailure):
    """The image is not on this node, and could not be brought here."""


class SandboxNotReady(RuntimeFailure):
    """The sandbox of the container has stopped."""


class RuntimeRefusal(Terminal):
    """The runtime cannot do what the pod asks for.

    `reason` is the container's waiting reason (CreateContainerConfigError, CreateContainerError, RunContainerError,
    ErrImageNeverPull); the text is the message of the event.
    """

    reason = "CreateContainerError"

    def __init__(self, message: str, *, reason: str = "") -> None:
        super().__init__(message)
        if reason:
            self.reason = reason


class DeviceUnresolved(RuntimeRefusal):
    """A CDI device id could not be turned into edits; the text names the id and the file."""


class LimitsRefused(RuntimeRefusal):
    """The container has limits, and this runtime may not make the cgroup that holds them."""


class ContainerUnknown(RuntimeRefusal):
    """There is no container or sandbox of that id."""


class RuntimeUnsuitable(Terminal):
    """This runtime cannot serve the node; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class RuntimeVersion:
    """`name://container id` is what a pod's status shows; `name://version` is the node's containerRuntimeVersion."""

    name: str
    version: str
    api_version: str = "v1"


@dataclass(frozen=True, slots=True)
class PodIdentity:
    uid: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class ContainerLimits:
    """What a cgroup holds a container (or a whole pod) to; zero means no limit."""

    cpu_shares: int = 0
    """Weight, as in cgroup v1: 2 is the least, 1024 is one cpu."""
    cpu_quota: int = 0
    """Microseconds of cpu in each period; 0 is no limit."""
    cpu_period: int = 100_000
    memory_bytes: int = 0
    oom_score_adj: int = 0
    pids: int = 0

    @property
    def needs_cgroup(self) -> bool:
        """Whether anything is asked for that must hold, rather than being a weight."""
        return bool(self.cpu_quota or self.memory_bytes or self.pids)


NO_LIMITS = ContainerLimits()


@dataclass(frozen=True, slots=True)
class BindMount:
    """A file or directory of the node that shows up in the container."""

    host_path: str
    container_path: str
    read_only: bool = False
    propagation: str = ""
    """Empty (private), `HostToContainer` or `Bidirectional`."""
    needed: bool = True
    """False: a runtime that can make no mounts may leave it out instead of refusing the container."""


@dataclass(frozen=True, slots=True)
class SandboxConfig:
    pod: PodIdentity
    attempt: int = 0
    hostname: str = ""
    log_directory: str = ""
    """Where the logs of the pod's containers go; a container's `log_path` is relative to it."""
    host_network: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    """The pod's annotations; the simulated runtime reads how its containers behave from them."""
    limits: ContainerLimits = NO_LIMITS
    """Of all its containers together: what the pod itself names."""


class ContainerRole(StrEnum):
    """What the container is in its pod. Only the simulated runtime uses it: its init containers exit at once."""

    MAIN = "main"
    INIT = "init"
    SIDECAR = "sidecar"


@dataclass(frozen=True, slots=True)
class ContainerConfig:
    pod: PodIdentity
    name: str
    attempt: int = 0
    """0 for the first start, one more for every restart."""
    target: str = ""
    """The id of a container whose processes it sees, and which sees its own; empty: those of its own alone."""
    role: ContainerRole = ContainerRole.MAIN
    image: str = ""
    command: Sequence[str] = ()
    args: Sequence[str] = ()
    working_dir: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    mounts: Sequence[BindMount] = ()
    cdi_devices: Sequence[str] = ()
    """CDI ids in the order in which they are applied; later ones win. Repeats are passed on."""
    limits: ContainerLimits = NO_LIMITS
    log_path: str = ""
    """Relative to the sandbox's log directory, e.g. `main/0.log`."""
    tty: bool = False
    stdin: bool = False
    stdin_once: bool = False
    run_as_user: int | None = None
    run_as_group: int | None = None
    privileged: bool = False
    read_only_root: bool = False
    stop_signal: str = ""
    """A name such as `SIGUSR1`; empty is the image's, or SIGTERM."""
    termination_file: str = ""
    """The file on the node that holds the termination message; one of `mounts` brings it into the container."""
    log_on_error: bool = False
    """terminationMessagePolicy FallbackToLogsOnError: without a termination message, use the end of the log."""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Kept by the runtime and handed back, e.g. a hash of the container's spec."""


@dataclass(frozen=True, slots=True)
class ContainerUsage:
    """What a container takes: memory that the kernel cannot take back from it, and bytes of its own files."""

    memory_bytes: int = 0
    disk_bytes: int = 0

    def of(self, resource: str) -> int:
        return {"memory": self.memory_bytes, "ephemeral-storage": self.disk_bytes}.get(resource, 0)


class SandboxState(StrEnum):
    READY = "ready"
    NOT_READY = "notready"


class ContainerState(StrEnum):
    CREATED = "created"
    RUNNING = "running"
    EXITED = "exited"


@dataclass(frozen=True, slots=True)
class SandboxInfo:
    id: str
    pod: PodIdentity
    attempt: int
    state: SandboxState
    created: datetime
    ip: str = ""
    """Empty while unknown, and in a CRI runtime with a host network: the node's address then."""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ContainerInfo:
    """`started`, `finished`, `exit_code` and `reason` are set as far as the state goes."""

    id: str
    sandbox_id: str
    pod: PodIdentity
    name: str
    attempt: int
    state: ContainerState
    created: datetime
    started: datetime | None = None
    finished: datetime | None = None
    exit_code: int = 0
    """128 + n when signal n ended it, as a shell says it."""
    reason: str = ""
    """`Completed`, `Error`, `OOMKilled`, or `ContainerStatusUnknown` when nobody saw its end."""
    message: str = ""
    """Why it could not be started or was lost; else what it left in its termination file."""
    log_path: str = ""
    """Absolute."""
    image: str = ""
    image_ref: str = ""
    """The image by its digest where there is one: `imageID` in the pod's status."""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExecResult:
    exit_code: int
    stdout: bytes
    stderr: bytes


class ByteReader(Protocol):
    async def read(self) -> bytes:
        """The next piece, as it comes; empty at the end, and from then on."""
        ...


class ExecStreams(Protocol):
    """A running exec or attach. `close` ends it: an exec's process is killed, an attached container goes on."""

    @property
    def stdout(self) -> ByteReader: ...

    @property
    def stderr(self) -> ByteReader:
        """Empty with a tty: a terminal has one output, which is stdout."""
        ...

    async def write_stdin(self, data: bytes) -> None:
        """Waits while the process does not read. Data for a process that closed its stdin is dropped."""
        ...

    async def close_stdin(self) -> None: ...

    async def resize(self, width: int, height: int) -> None:
        """Without a tty, nothing."""
        ...

    async def wait(self) -> int:
        """The exit code: of the exec's process; of an attach, once the container ended or was left."""
        ...

    async def close(self) -> None: ...


class ByteStream(Protocol):
    """A connection to a port in the sandbox, both ways."""

    async def read(self) -> bytes:
        """The next piece, as it comes; empty at the end, and from then on."""
        ...

    async def write(self, data: bytes) -> None:
        """Waits while the peer does not read; raises RuntimeFailure once the connection is lost."""
        ...

    async def close_write(self) -> None:
        """Tell the peer that nothing more comes; reading goes on."""
        ...

    async def close(self) -> None: ...


class Runtime(Protocol):
    async def __aenter__(self) -> Self:
        """Adopt what runs already. Raises RuntimeUnsuitable, or RuntimeFailure when it does not answer."""
        ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    async def version(self) -> RuntimeVersion: ...

    async def ensure_image(self, image: str, *, pull_policy: str = "IfNotPresent") -> str:
        """Have the image here, and return its reference for `imageID`; empty for runtimes that use none.

        Raises ImageUnavailable, or RuntimeRefusal with the reason ErrImageNeverPull.
        """
        ...

    async def run_sandbox(self, sandbox: SandboxConfig) -> str:
        """Make and start it; returns its id. A sandbox of the same pod and attempt is an error."""
        ...

    async def stop_sandbox(self, sandbox_id: str) -> None:
        """Stop it with every container in it, at once; give containers their grace with `stop_container` first."""
        ...

    async def remove_sandbox(self, sandbox_id: str) -> None:
        """Stop if need be; remove it with its containers. Logs stay: whoever named the directory removes it."""
        ...

    async def sandboxes(self) -> list[SandboxInfo]: ...

    async def create_container(self, sandbox_id: str, config: ContainerConfig) -> str:
        """Resolve devices and make everything ready, but start nothing. Returns the container's id.

        Raises a RuntimeRefusal when the pod asks for what cannot be; nothing is left behind then.
        """
        ...

    async def start_container(self, container_id: str) -> None:
        """Raises RuntimeRefusal (reason RunContainerError) when its command cannot be run; the container has exited."""
        ...

    async def stop_container(self, container_id: str, *, grace: float) -> None:
        """Send the stop signal, kill after `grace` seconds, return once it has exited.

        A cancelled call does not take the stop signal back.
        """
        ...

    async def remove_container(self, container_id: str) -> None:
        """Kill if need be; forget it. Its log file stays."""
        ...

    async def containers(self) -> list[ContainerInfo]:
        """All that are known, ended ones too until they are removed."""
        ...

    def changes(self) -> AsyncIterator[str]:
        """Pod uids, each time something of that pod changed by itself (a container exited, a sandbox broke).

        For one reader. Repeats of a uid that has not been read yet come once.
        """
        ...

    async def exec(
        self, container_id: str, command: Sequence[str], *, tty: bool = False, stdin: bool = False
    ) -> ExecStreams:
        """Run a command in a running container. Raises RuntimeRefusal when there is no such command."""
        ...

    async def exec_sync(self, container_id: str, command: Sequence[str], *, limit: float = 0) -> ExecResult:
        """Run it to its end; for probes and hooks. Raises DeadlineExceeded after `limit` seconds (0: none)."""
        ...

    async def attach(self, container_id: str, *, stdin: bool = False) -> ExecStreams:
        """What a running container writes from now on, and its stdin if it was made with one."""
        ...

    async def usage(self, container_id: str) -> ContainerUsage:
        """What a running container takes now. Raises RuntimeFailure when it does not run."""
        ...

    async def reopen_log(self, container_id: str) -> None:
        """After the log file was renamed: go on in a new one of the old name."""
        ...

    async def port_forward(self, sandbox_id: str, port: int) -> ByteStream:
        """Connect to a TCP port of the sandbox. Raises RuntimeFailure when nothing listens there."""
        ...
