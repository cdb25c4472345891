"""A runtime that runs nothing: state alone, on an injected clock, for thousands of nodes in one process.

In:  the contract's calls; how containers behave comes from the pod's annotations (see `behaviours`).
Out: states that change when the clock says so.

Invariant: only a container with an end in sight has a task; all others cost their entry in a dictionary.
"""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import NoReturn, Self

from drakit.base.clock import Clock
from drakit.nodeagent.runtimes.behaviours import Behaviour, behaviour_of
from drakit.nodeagent.runtimes.changes import PodChanges
from drakit.nodeagent.runtimes.contract import (
    ContainerConfig,
    ContainerInfo,
    ContainerState,
    ContainerUnknown,
    ContainerUsage,
    ExecResult,
    RuntimeFailure,
    RuntimeRefusal,
    RuntimeVersion,
    SandboxConfig,
    SandboxInfo,
    SandboxNotReady,
    SandboxState,
)

TERMINATED = 128 + 15
KILLED = 128 + 9


@dataclass(slots=True)
class _Simulated:
    info: ContainerInfo
    behaviour: Behaviour
    cdi_devices: tuple[str, ...]
    end: asyncio.Task[None] | None = None


class SimulatedRuntime:
    """Keeps the Runtime contract; leaving it forgets everything, as a machine that is switched off does."""

    def __init__(
        self,
        *,
        clock: Clock,
        pod_cidr: str = "10.244.0.0/16",
        new_id: Callable[[], str] = lambda: secrets.token_hex(16),
    ) -> None:
        self._clock = clock
        self._new_id = new_id
        self._network = ipaddress.ip_network(pod_cidr)
        self._last_address = 0
        self._sandboxes: dict[str, SandboxInfo] = {}
        self._containers: dict[str, _Simulated] = {}
        self._changes = PodChanges()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ends = [container.end for container in self._containers.values() if container.end is not None]
        for end in ends:
            end.cancel()
        await asyncio.gather(*ends, return_exceptions=True)
        self._changes.close()

    async def version(self) -> RuntimeVersion:
        return RuntimeVersion(name="simulated", version="1")

    async def ensure_image(self, image: str, *, pull_policy: str = "IfNotPresent") -> str:  # noqa: ARG002
        return image

    async def run_sandbox(self, sandbox: SandboxConfig) -> str:
        if any((known.pod, known.attempt) == (sandbox.pod, sandbox.attempt) for known in self._sandboxes.values()):
            raise RuntimeFailure(f"pod {sandbox.pod.uid} has a sandbox of attempt {sandbox.attempt} already")
        sandbox_id = self._new_id()
        self._sandboxes[sandbox_id] = SandboxInfo(
            id=sandbox_id,
            pod=sandbox.pod,
            attempt=sandbox.attempt,
            state=SandboxState.READY,
            created=self._clock.now(),
            ip="" if sandbox.host_network else self._next_address(),
            labels=sandbox.labels,
            annotations=sandbox.annotations,
        )
        return sandbox_id

    async def stop_sandbox(self, sandbox_id: str) -> None:
        sandbox = self._sandboxes.get(sandbox_id)
        if sandbox is None:
            return
        for container in self._of_sandbox(sandbox_id):
            self._finish(container, KILLED)
        self._sandboxes[sandbox_id] = replace(sandbox, state=SandboxState.NOT_READY)

    async def remove_sandbox(self, sandbox_id: str) -> None:
        await self.stop_sandbox(sandbox_id)
        for container in self._of_sandbox(sandbox_id):
            del self._containers[container.info.id]
        self._sandboxes.pop(sandbox_id, None)

    async def sandboxes(self) -> list[SandboxInfo]:
        return list(self._sandboxes.values())

    async def create_container(self, sandbox_id: str, config: ContainerConfig) -> str:
        sandbox = self._sandboxes.get(sandbox_id)
        if sandbox is None or sandbox.state is SandboxState.NOT_READY:
            raise SandboxNotReady(f"sandbox {sandbox_id} of pod {config.pod.uid} is not ready")
        info = ContainerInfo(
            id=self._new_id(),
            sandbox_id=sandbox_id,
            pod=config.pod,
            name=config.name,
            attempt=config.attempt,
            state=ContainerState.CREATED,
            created=self._clock.now(),
            image=config.image,
            image_ref=config.image,
            labels=config.labels,
            annotations=config.annotations,
        )
        behaviour = behaviour_of(sandbox.annotations, config)
        self._containers[info.id] = _Simulated(info, behaviour, tuple(config.cdi_devices))
        return info.id

    async def start_container(self, container_id: str) -> None:
        container = self._container(container_id)
        if container.info.state is not ContainerState.CREATED:
            raise RuntimeFailure(f"container {container_id} is {container.info.state}, not created")
        container.info = replace(container.info, state=ContainerState.RUNNING, started=self._clock.now())
        if container.behaviour.runs_for is not None:
            self._end_after(container, container.behaviour.runs_for, container.behaviour.exits_with)

    async def stop_container(self, container_id: str, *, grace: float) -> None:
        container = self._containers.get(container_id)
        if container is None or container.info.state is not ContainerState.RUNNING:
            return
        slow = container.behaviour.stops_after
        if slow > 0:
            await self._clock.sleep(min(slow, grace))
        self._finish(container, TERMINATED if slow <= grace else KILLED)

    async def remove_container(self, container_id: str) -> None:
        container = self._containers.pop(container_id, None)
        if container is not None:
            self._finish(container, KILLED)

    async def containers(self) -> list[ContainerInfo]:
        return [container.info for container in self._containers.values()]

    def changes(self) -> PodChanges:
        return self._changes

    def cdi_devices(self, container_id: str) -> tuple[str, ...]:
        """The ids that the container was made with, in order: all that a simulated device comes down to."""
        return self._container(container_id).cdi_devices

    async def exec(
        self,
        container_id: str,
        command: Sequence[str],  # noqa: ARG002
        *,
        tty: bool = False,  # noqa: ARG002
        stdin: bool = False,  # noqa: ARG002
    ) -> NoReturn:
        self._refuse(container_id, "exec")

    async def exec_sync(self, container_id: str, command: Sequence[str], *, limit: float = 0) -> ExecResult:  # noqa: ARG002
        """Commands of probes and hooks succeed in a running container: nothing is there that could fail."""
        if self._container(container_id).info.state is not ContainerState.RUNNING:
            raise RuntimeFailure(f"container {container_id} is not running")
        return ExecResult(exit_code=0, stdout=b"", stderr=b"")

    async def attach(self, container_id: str, *, stdin: bool = False) -> NoReturn:  # noqa: ARG002
        self._refuse(container_id, "attach")

    async def usage(self, container_id: str) -> ContainerUsage:
        """Nothing: a simulated container has neither memory nor files."""
        self._container(container_id)
        return ContainerUsage()

    async def reopen_log(self, container_id: str) -> None:
        self._container(container_id)

    async def port_forward(self, sandbox_id: str, port: int) -> NoReturn:  # noqa: ARG002
        self._refuse(sandbox_id, "port-forward")

    def _refuse(self, target: str, what: str) -> NoReturn:
        raise RuntimeRefusal(f"{what} {target}: simulated containers run no process")

    def _container(self, container_id: str) -> _Simulated:
        container = self._containers.get(container_id)
        if container is None:
            raise ContainerUnknown(f"there is no container {container_id}")
        return container

    def _of_sandbox(self, sandbox_id: str) -> list[_Simulated]:
        return [container for container in self._containers.values() if container.info.sandbox_id == sandbox_id]

    def _next_address(self) -> str:
        """Addresses go round: a simulated node has far fewer pods than its range has addresses."""
        self._last_address = self._last_address % (self._network.num_addresses - 2) + 1
        return str(self._network[self._last_address])

    def _end_after(self, container: _Simulated, seconds: float, exit_code: int) -> None:
        async def end() -> None:
            await self._clock.sleep(seconds)
            container.end = None
            self._finish(container, exit_code)
            self._changes.tell(container.info.pod.uid)

        container.end = asyncio.create_task(end())

    def _finish(self, container: _Simulated, exit_code: int) -> None:
        if container.info.state is ContainerState.EXITED:
            return
        if container.end is not None:
            container.end.cancel()
            container.end = None
        container.info = replace(
            container.info,
            state=ContainerState.EXITED,
            finished=self._clock.now(),
            exit_code=exit_code,
            reason="Completed" if exit_code == 0 else "Error",
        )
