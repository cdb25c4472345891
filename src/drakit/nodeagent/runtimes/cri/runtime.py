"""Any CRI runtime over its socket: containerd, CRI-O.

In:  the contract's calls.
Out: CRI calls, with the CDI ids in their field of CreateContainer.

A runtime without CDI support is refused at the start (see `support`). Changes come from the runtime's events, and from
a look at all containers: every 10 s, as a stream that breaks off loses some; every second where there are no events.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import aiohttp
import grpc

from drakit.base.clock import Clock
from drakit.base.errors import DeadlineExceeded, DrakitError
from drakit.nodeagent.runtimes.changes import PodChanges
from drakit.nodeagent.runtimes.contract import (
    ByteStream,
    ContainerConfig,
    ContainerInfo,
    ContainerState,
    ContainerUnknown,
    ContainerUsage,
    DeviceUnresolved,
    ExecResult,
    ExecStreams,
    ImageUnavailable,
    RuntimeFailure,
    RuntimeRefusal,
    RuntimeUnsuitable,
    RuntimeVersion,
    SandboxConfig,
    SandboxInfo,
)
from drakit.nodeagent.runtimes.cri.messages import (
    HOST_NETWORK,
    LOG_DIRECTORY,
    OURS,
    POD_UID,
    TTY,
    container_info,
    container_message,
    linux_sandbox,
    sandbox_info,
    sandbox_message,
    whole_seconds,
)
from drakit.nodeagent.runtimes.cri.streams import V4, SocketForward, SocketSession, open_socket
from drakit.nodeagent.runtimes.cri.support import why_without_cdi
from drakit.pluginapi import cri_v1_pb2 as cri
from drakit.pluginapi.cri_v1_pb2_grpc import ImageServiceStub, RuntimeServiceStub

T = TypeVar("T")

_CALL_SECONDS = 120.0
_PULL_SECONDS = 3600.0
_RELIST_SECONDS = 1.0
_RESYNC_SECONDS = 10.0
_RECONNECT_SECONDS = 5.0
_MOST_MESSAGE = 16 << 20


class CriRuntime:
    """Keeps the Runtime contract over the socket at `endpoint` (a path, or `unix:///path`)."""

    def __init__(self, endpoint: str, *, clock: Clock, assume_cdi: bool = False) -> None:
        self._endpoint = endpoint if ":" in endpoint else f"unix://{Path(endpoint).absolute()}"
        self._clock = clock
        self._assume_cdi = assume_cdi
        self._changes = PodChanges()
        self._sandbox_configs: dict[str, cri.PodSandboxConfig] = {}
        self._ended: dict[str, ContainerInfo] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        options = [("grpc.max_receive_message_length", _MOST_MESSAGE)]
        self._channel = grpc.aio.insecure_channel(self._endpoint, options=options)
        self._runtime: Any = RuntimeServiceStub(self._channel)
        self._images: Any = ImageServiceStub(self._channel)
        self._session = aiohttp.ClientSession()
        try:
            await self._check()
        except BaseException:
            await self._close()
            raise
        self._tasks = [asyncio.create_task(self._follow()), asyncio.create_task(self._relist(_RESYNC_SECONDS))]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._close()
        self._changes.close()

    async def _close(self) -> None:
        await self._session.close()
        await self._channel.close()

    async def _check(self) -> None:
        version = await self.version()
        status = await self._call(self._runtime.Status, cri.StatusRequest(verbose=True))
        reason = why_without_cdi(version, status.info, assume_cdi=self._assume_cdi)
        if reason is not None:
            raise RuntimeUnsuitable(f"the runtime at {self._endpoint} cannot serve DRA: {reason}")

    async def version(self) -> RuntimeVersion:
        answer = await self._call(self._runtime.Version, cri.VersionRequest(version="v1"))
        return RuntimeVersion(answer.runtime_name, answer.runtime_version, answer.runtime_api_version)

    async def ensure_image(self, image: str, *, pull_policy: str = "IfNotPresent") -> str:
        spec = cri.ImageSpec(image=image)
        here = (await self._call(self._images.ImageStatus, cri.ImageStatusRequest(image=spec))).image
        if here.id and pull_policy != "Always":
            return str(here.repo_digests[0] if here.repo_digests else here.id)
        if pull_policy == "Never":
            message = f'Container image "{image}" is not present with pull policy of Never'
            raise RuntimeRefusal(message, reason="ErrImageNeverPull")
        try:
            request = cri.PullImageRequest(image=spec)
            answer = await self._call(self._images.PullImage, request, seconds=_PULL_SECONDS)
        # Runtimes answer a failed pull with any code; for the pod all of them are ErrImagePull and are tried again.
        except (RuntimeFailure, RuntimeRefusal) as error:
            raise ImageUnavailable(f'Failed to pull image "{image}": {error}') from None
        return str(answer.image_ref)

    # -- sandboxes

    async def run_sandbox(self, sandbox: SandboxConfig) -> str:
        config = sandbox_message(sandbox)
        answer = await self._call(self._runtime.RunPodSandbox, cri.RunPodSandboxRequest(config=config))
        self._sandbox_configs[answer.pod_sandbox_id] = config
        return str(answer.pod_sandbox_id)

    async def stop_sandbox(self, sandbox_id: str) -> None:
        with contextlib.suppress(ContainerUnknown):
            await self._call(self._runtime.StopPodSandbox, cri.StopPodSandboxRequest(pod_sandbox_id=sandbox_id))

    async def remove_sandbox(self, sandbox_id: str) -> None:
        await self.stop_sandbox(sandbox_id)
        with contextlib.suppress(ContainerUnknown):
            await self._call(self._runtime.RemovePodSandbox, cri.RemovePodSandboxRequest(pod_sandbox_id=sandbox_id))
        self._sandbox_configs.pop(sandbox_id, None)

    async def sandboxes(self) -> list[SandboxInfo]:
        return [sandbox_info(sandbox, await self._ip(sandbox)) for sandbox in await self._list_sandboxes()]

    async def _list_sandboxes(self) -> list[cri.PodSandbox]:
        request = cri.ListPodSandboxRequest(filter=cri.PodSandboxFilter(label_selector=OURS))
        return list((await self._call(self._runtime.ListPodSandbox, request)).items)

    async def _ip(self, sandbox: cri.PodSandbox) -> str:
        if sandbox.state != cri.SANDBOX_READY:
            return ""
        with contextlib.suppress(ContainerUnknown):
            request = cri.PodSandboxStatusRequest(pod_sandbox_id=sandbox.id)
            return str((await self._call(self._runtime.PodSandboxStatus, request)).status.network.ip)
        return ""

    # -- containers

    async def create_container(self, sandbox_id: str, config: ContainerConfig) -> str:
        sandbox = await self._sandbox_config(sandbox_id)
        host_network = sandbox.linux.security_context.namespace_options.network == cri.NODE
        message = container_message(config, host_network=host_network)
        request = cri.CreateContainerRequest(pod_sandbox_id=sandbox_id, config=message, sandbox_config=sandbox)
        try:
            return str((await self._call(self._runtime.CreateContainer, request)).container_id)
        except RuntimeFailure as error:
            if "CDI" in str(error):  # an id that the runtime cannot resolve comes as an error of unknown kind
                raise DeviceUnresolved(str(error)) from None
            raise

    async def _sandbox_config(self, sandbox_id: str) -> cri.PodSandboxConfig:
        """The config of a sandbox. After a restart of the agent it is rebuilt from the status of the sandbox."""
        known = self._sandbox_configs.get(sandbox_id)
        if known is None:
            request = cri.PodSandboxStatusRequest(pod_sandbox_id=sandbox_id)
            status = (await self._call(self._runtime.PodSandboxStatus, request)).status
            known = cri.PodSandboxConfig(
                metadata=status.metadata,
                labels=dict(status.labels),
                annotations=dict(status.annotations),
                log_directory=status.annotations.get(LOG_DIRECTORY, ""),
                linux=linux_sandbox(host_network=status.annotations.get(HOST_NETWORK) == "true"),
            )
            self._sandbox_configs[sandbox_id] = known
        return known

    async def start_container(self, container_id: str) -> None:
        try:
            await self._call(self._runtime.StartContainer, cri.StartContainerRequest(container_id=container_id))
        except RuntimeFailure as error:
            raise RuntimeRefusal(str(error), reason="RunContainerError") from None

    async def stop_container(self, container_id: str, *, grace: float) -> None:
        request = cri.StopContainerRequest(container_id=container_id, timeout=whole_seconds(grace))
        with contextlib.suppress(ContainerUnknown):
            await self._call(self._runtime.StopContainer, request, seconds=grace + _CALL_SECONDS)

    async def remove_container(self, container_id: str) -> None:
        with contextlib.suppress(ContainerUnknown):
            await self._call(self._runtime.RemoveContainer, cri.RemoveContainerRequest(container_id=container_id))
        self._ended.pop(container_id, None)

    async def containers(self) -> list[ContainerInfo]:
        found = await self._list()
        infos = await asyncio.gather(*(self._info(container) for container in found))
        # Forget containers that something else removed; otherwise the cache grows as long as the agent runs.
        known = {container.id for container in found}
        self._ended = {key: info for key, info in self._ended.items() if key in known}
        return [info for info in infos if info is not None]

    async def _list(self) -> list[cri.Container]:
        request = cri.ListContainersRequest(filter=cri.ContainerFilter(label_selector=OURS))
        return list((await self._call(self._runtime.ListContainers, request)).containers)

    async def _info(self, container: cri.Container) -> ContainerInfo | None:
        """The status of a container. An exited container never changes, so it is cached.

        None when the container was removed after it was listed.
        """
        if container.id in self._ended:
            return self._ended[container.id]
        request = cri.ContainerStatusRequest(container_id=container.id)
        try:
            status = (await self._call(self._runtime.ContainerStatus, request)).status
        except ContainerUnknown:
            return None
        info = container_info(container, status)
        if info.state is ContainerState.EXITED:
            self._ended[container.id] = info
        return info

    def changes(self) -> PodChanges:
        return self._changes

    # -- streams

    async def exec(
        self, container_id: str, command: Sequence[str], *, tty: bool = False, stdin: bool = False
    ) -> ExecStreams:
        request = cri.ExecRequest(
            container_id=container_id, cmd=list(command), tty=tty, stdin=stdin, stdout=True, stderr=not tty
        )
        url = (await self._call(self._runtime.Exec, request)).url
        return SocketSession(await open_socket(self._session, url), stdin=stdin)

    async def exec_sync(self, container_id: str, command: Sequence[str], *, limit: float = 0) -> ExecResult:
        request = cri.ExecSyncRequest(container_id=container_id, cmd=list(command), timeout=whole_seconds(limit))
        # The runtime ends the command itself; the call gets a little longer, for its answer.
        answer = await self._call(self._runtime.ExecSync, request, seconds=limit + 10 if limit else None)
        return ExecResult(answer.exit_code, answer.stdout, answer.stderr)

    async def attach(self, container_id: str, *, stdin: bool = False) -> ExecStreams:
        status = await self._call(self._runtime.ContainerStatus, cri.ContainerStatusRequest(container_id=container_id))
        tty = status.status.annotations.get(TTY) == "true"
        request = cri.AttachRequest(container_id=container_id, stdin=stdin, tty=tty, stdout=True, stderr=not tty)
        url = (await self._call(self._runtime.Attach, request)).url
        return SocketSession(await open_socket(self._session, url), stdin=stdin)

    async def usage(self, container_id: str) -> ContainerUsage:
        request = cri.ContainerStatsRequest(container_id=container_id)
        stats = (await self._call(self._runtime.ContainerStats, request)).stats
        return ContainerUsage(int(stats.memory.working_set_bytes.value), int(stats.writable_layer.used_bytes.value))

    async def reopen_log(self, container_id: str) -> None:
        request = cri.ReopenContainerLogRequest(container_id=container_id)
        await self._call(self._runtime.ReopenContainerLog, request)

    async def port_forward(self, sandbox_id: str, port: int) -> ByteStream:
        request = cri.PortForwardRequest(pod_sandbox_id=sandbox_id, port=[port])
        url = (await self._call(self._runtime.PortForward, request)).url
        # The WebSocket protocol of port-forward has the ports in the URL; the runtime gives a URL without them.
        joint = "&" if "?" in url else "?"
        return SocketForward(await open_socket(self._session, f"{url}{joint}port={port}", protocols=(V4,)))

    # -- changes

    async def _follow(self) -> None:
        """Read the event stream of the runtime. A runtime without one is listed every second instead."""
        while True:
            try:
                async for event in self._runtime.GetContainerEvents(cri.GetEventsRequest()):
                    uid = event.pod_sandbox_status.metadata.uid
                    if uid:
                        self._changes.tell(uid)
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                    await self._relist(_RELIST_SECONDS)
            # Events that the runtime sends while the stream is down are lost: the next look at all makes up for them.
            await self._clock.sleep(_RECONNECT_SECONDS)

    async def _relist(self, seconds: float) -> None:
        before: dict[str, tuple[str, int]] | None = None
        while True:
            # Whatever goes wrong: without these looks, nobody would hear of a container's end.
            with contextlib.suppress(DrakitError):
                now = await self._states()
                for uid in _changed(before, now):
                    self._changes.tell(uid)
                before = now
            await self._clock.sleep(seconds)

    async def _states(self) -> dict[str, tuple[str, int]]:
        """Pod uid and state of every container and sandbox."""
        states: dict[str, tuple[str, int]] = {
            container.id: (container.labels[POD_UID], container.state) for container in await self._list()
        }
        for sandbox in await self._list_sandboxes():
            states[sandbox.id] = (sandbox.metadata.uid, sandbox.state)
        return states

    async def _call(
        self, method: Callable[..., Awaitable[T]], request: Any, *, seconds: float | None = _CALL_SECONDS
    ) -> T:
        try:
            return await method(request, timeout=seconds)
        except grpc.aio.AioRpcError as error:
            raise _failure(error) from None


def _changed(before: dict[str, tuple[str, int]] | None, now: dict[str, tuple[str, int]]) -> set[str]:
    """The pods whose state differs from the last look. The first look reports none: the agent has just listed all."""
    if before is None:
        return set()
    keys = [key for key in before.keys() | now.keys() if before.get(key) != now.get(key)]
    return {states[key][0] for key in keys for states in (before, now) if key in states}


def _failure(error: grpc.aio.AioRpcError) -> Exception:
    text = error.details() or error.code().name
    if error.code() is grpc.StatusCode.NOT_FOUND:
        return ContainerUnknown(text)
    if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return DeadlineExceeded(text)
    if error.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNIMPLEMENTED):
        return RuntimeRefusal(text)
    return RuntimeFailure(text)
