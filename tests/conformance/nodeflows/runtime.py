"""A runtime under the recording's control: containers exit when the recording says so, and fail where it failed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Self

from drakit.base.clock import FakeClock
from drakit.nodeagent.runtimes.contract import (
    ContainerConfig,
    ContainerInfo,
    ContainerState,
    ContainerUsage,
    RuntimeFailure,
    RuntimeVersion,
    SandboxConfig,
    SandboxInfo,
    SandboxState,
)

Plain = dict[str, Any]
_SOON = 0.5


@dataclass(slots=True)
class CriCall:
    method: str
    pod: str
    container: str = ""
    about: Any = None


class ScriptedRuntime:
    """Outlives the agent. `failure` says why a container cannot be made now; empty when it can."""

    def __init__(
        self,
        clock: FakeClock,
        log: Callable[[CriCall], None],
        failure: Callable[[str, str], str],
        answered: Callable[[], Awaitable[None]],
    ) -> None:
        self._clock = clock
        self._answered = answered
        self._log = log
        self._failure = failure
        self._sandboxes: dict[str, SandboxInfo] = {}
        self._containers: dict[str, ContainerInfo] = {}
        self._configs: dict[str, ContainerConfig] = {}
        self._numbers = iter(range(1, 10_000))
        self._changed: asyncio.Queue[str] = asyncio.Queue()
        self._ends: set[asyncio.Task[None]] = set()
        self.usages: dict[str, ContainerUsage] = {}
        """What each container of a pod takes, by the pod's name."""

    @property
    def targets(self) -> dict[str, str]:
        """Which container looks into which, by their ids."""
        return {container: config.target for container, config in self._configs.items() if config.target}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return

    async def close(self) -> None:
        for end in self._ends:
            end.cancel()
        await asyncio.gather(*self._ends, return_exceptions=True)

    async def version(self) -> RuntimeVersion:
        return RuntimeVersion(name="fake", version="1")

    async def ensure_image(self, image: str, *, pull_policy: str = "IfNotPresent") -> str:  # noqa: ARG002
        return image

    async def run_sandbox(self, sandbox: SandboxConfig) -> str:
        self._log(CriCall("RunPodSandbox", sandbox.pod.name, about={"attempt": sandbox.attempt}))
        sandbox_id = f"sandbox-{next(self._numbers)}"
        self._sandboxes[sandbox_id] = SandboxInfo(
            sandbox_id, sandbox.pod, sandbox.attempt, SandboxState.READY, self._clock.now()
        )
        await self._answered()
        return sandbox_id

    async def stop_sandbox(self, sandbox_id: str) -> None:
        sandbox = self._sandboxes[sandbox_id]
        self._log(CriCall("StopPodSandbox", sandbox.pod.name))
        self._sandboxes[sandbox_id] = replace(sandbox, state=SandboxState.NOT_READY)
        await self._answered()

    async def remove_sandbox(self, sandbox_id: str) -> None:
        self._sandboxes.pop(sandbox_id, None)
        for each in [c.id for c in self._containers.values() if c.sandbox_id == sandbox_id]:
            del self._containers[each]

    async def sandboxes(self) -> list[SandboxInfo]:
        return list(self._sandboxes.values())

    async def create_container(self, sandbox_id: str, config: ContainerConfig) -> str:
        about = {"attempt": config.attempt, "CDI_devices": list(config.cdi_devices)}
        self._log(CriCall("CreateContainer", config.pod.name, config.name, about))
        if reason := self._failure(config.pod.name, config.name):
            raise RuntimeFailure(reason)
        container_id = f"container-{next(self._numbers)}"
        self._configs[container_id] = config
        self._containers[container_id] = ContainerInfo(
            id=container_id,
            sandbox_id=sandbox_id,
            pod=config.pod,
            name=config.name,
            attempt=config.attempt,
            state=ContainerState.CREATED,
            created=self._clock.now(),
            image=config.image,
        )
        await self._answered()
        return container_id

    async def start_container(self, container_id: str) -> None:
        info, config = self._containers[container_id], self._configs[container_id]
        self._log(CriCall("StartContainer", info.pod.name, info.name, {"attempt": info.attempt}))
        self._containers[container_id] = replace(info, state=ContainerState.RUNNING, started=self._clock.now())
        if "EXIT_CODE" in config.env:
            after = float(config.env.get("EXIT_AFTER", _SOON))
            end = asyncio.create_task(self._exit_later(container_id, after, int(config.env["EXIT_CODE"])))
            self._ends.add(end)
            end.add_done_callback(self._ends.discard)
        await self._answered()

    async def _exit_later(self, container_id: str, after: float, code: int) -> None:
        await self._clock.sleep(after)
        self._exit(container_id, code)

    async def stop_container(self, container_id: str, *, grace: float) -> None:
        info, config = self._containers[container_id], self._configs[container_id]
        self._log(CriCall("StopContainer", info.pod.name, info.name, {"timeout": int(grace)}))
        slow = float(config.env.get("STOP_AFTER", 0))
        if slow:
            await self._clock.sleep(min(slow, grace))
        self._exit(container_id, 137 if slow > grace else 0, tell=False)
        await self._answered()

    async def remove_container(self, container_id: str) -> None:
        self._containers.pop(container_id, None)

    async def containers(self) -> list[ContainerInfo]:
        return list(self._containers.values())

    async def usage(self, container_id: str) -> ContainerUsage:
        return self.usages.get(self._containers[container_id].pod.name, ContainerUsage())

    async def changes(self) -> AsyncIterator[str]:
        while True:
            yield await self._changed.get()

    # What happens to it

    def running(self, pod: str, name: str = "") -> ContainerInfo | None:
        for info in self._containers.values():
            if info.pod.name == pod and info.state is ContainerState.RUNNING and name in ("", info.name):
                return info
        return None

    def config(self, container_id: str) -> ContainerConfig:
        return self._configs[container_id]

    def ends(self, container_id: str) -> bool:
        """Whether the container was made to end by itself."""
        return "EXIT_CODE" in self._configs[container_id].env

    def exit(self, code: int, *, pod: str = "", name: str = "") -> None:
        """Whatever runs (of that pod and name) exits."""
        for info in list(self._containers.values()):
            running = info.state is ContainerState.RUNNING
            if running and pod in ("", info.pod.name) and name in ("", info.name):
                self._exit(info.id, code)

    def forget(self) -> None:
        """The machine was switched off and on: nothing of before is there."""
        self._sandboxes.clear()
        self._containers.clear()

    def break_sandboxes(self, code: int) -> None:
        for sandbox in list(self._sandboxes.values()):
            if sandbox.state is SandboxState.READY:
                self._sandboxes[sandbox.id] = replace(sandbox, state=SandboxState.NOT_READY)
                self._changed.put_nowait(sandbox.pod.uid)
        self.exit(code)

    def _exit(self, container_id: str, code: int, *, tell: bool = True) -> None:
        info = self._containers.get(container_id)
        if info is None or info.state is not ContainerState.RUNNING:
            return
        self._containers[container_id] = replace(
            info, state=ContainerState.EXITED, finished=self._clock.now(), exit_code=code
        )
        if tell:
            self._changed.put_nowait(info.pod.uid)

    # Not used by flows

    async def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise RuntimeFailure("this runtime runs nothing")

    exec = exec_sync = attach = reopen_log = port_forward = _refuse
