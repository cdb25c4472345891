"""A scripted CRI runtime over real gRPC and WebSocket sockets; its containers are processes of this machine.

It says that it is what the test wants (name, version, configuration), refuses what the test scripts, records each call,
and applies the CDI ids of CreateContainer as a real runtime does, from spec files.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc
from aiohttp import WSMsgType, web

from drakit.nodeagent.runtimes.contract import (
    BindMount,
    ContainerConfig,
    ContainerLimits,
    ContainerState,
    ExecStreams,
    PodIdentity,
    RuntimeRefusal,
    SandboxConfig,
    SandboxState,
)
from drakit.pluginapi import cri_v1_pb2 as cri
from drakit.pluginapi.cri_v1_pb2_grpc import (
    ImageServiceServicer,
    RuntimeServiceServicer,
    add_ImageServiceServicer_to_server,
    add_RuntimeServiceServicer_to_server,
)
from tests.nodeagent.runtimes.scene import process_runtime

_STATES = {
    ContainerState.CREATED: cri.CONTAINER_CREATED,
    ContainerState.RUNNING: cri.CONTAINER_RUNNING,
    ContainerState.EXITED: cri.CONTAINER_EXITED,
}


@dataclass
class Script:
    """What the runtime says of itself, and what it refuses: code and text by method."""

    name: str = "containerd"
    version: str = "v2.1.0"
    config: dict[str, Any] = field(default_factory=lambda: {"enableCDI": True})
    has_events: bool = True
    refusals: dict[str, tuple[grpc.StatusCode, str]] = field(default_factory=dict)
    images: set[str] = field(default_factory=lambda: {"tool"})


class CriServer(RuntimeServiceServicer, ImageServiceServicer):
    """`async with`; `socket` is where it listens. Ends everything that it started."""

    def __init__(self, base: Path, script: Script | None = None) -> None:
        self._base = base
        self.script = script or Script()
        self.socket = base / "cri.sock"
        self.calls: list[tuple[str, Any]] = []
        self.labels: dict[str, Any] = {}
        self._runtime = process_runtime(base)
        self._streams: dict[str, Callable[[], Awaitable[Any]]] = {}
        self._events: set[asyncio.Queue[str]] = set()

    async def __aenter__(self) -> Self:
        await self._runtime.__aenter__()
        self._server = grpc.aio.server()
        add_RuntimeServiceServicer_to_server(self, self._server)
        add_ImageServiceServicer_to_server(self, self._server)
        self.add_methods(self._server)
        self._server.add_insecure_port(f"unix://{self.socket}")
        await self._server.start()
        app = web.Application()
        app.add_routes([web.get("/exec/{id}", self._serve_exec), web.get("/port/{id}", self._serve_port)])
        self._web = web.AppRunner(app)
        await self._web.setup()
        site = web.TCPSite(self._web, "127.0.0.1", 0)
        await site.start()
        self._port = self._web.addresses[0][1]
        self._watch = asyncio.create_task(self._tell_events())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watch.cancel()
        await asyncio.gather(self._watch, return_exceptions=True)
        await self._server.stop(0)
        await self._web.cleanup()
        for sandbox in await self._runtime.sandboxes():
            await self._runtime.remove_sandbox(sandbox.id)
        await self._runtime.__aexit__(None, None, None)

    def add_methods(self, server: grpc.aio.Server) -> None:
        """Methods of a subclass that the node agent does not need."""

    def requests(self, method: str) -> list[Any]:
        return [request for name, request in self.calls if name == method]

    async def _record(self, method: str, request: Any, context: Any) -> None:
        self.calls.append((method, request))
        if refusal := self.script.refusals.get(method):
            await context.abort(*refusal)

    async def _tell_events(self) -> None:
        async for uid in self._runtime.changes():
            for queue in self._events:
                queue.put_nowait(uid)

    # -- runtime service

    async def Version(self, request: Any, context: Any) -> Any:
        await self._record("Version", request, context)
        return cri.VersionResponse(
            version="0.1.0",
            runtime_name=self.script.name,
            runtime_version=self.script.version,
            runtime_api_version="v1",
        )

    async def Status(self, request: Any, context: Any) -> Any:
        await self._record("Status", request, context)
        info = {"config": json.dumps(self.script.config)} if request.verbose else {}
        return cri.StatusResponse(status=cri.RuntimeStatus(), info=info)

    async def RunPodSandbox(self, request: Any, context: Any) -> Any:
        await self._record("RunPodSandbox", request, context)
        config = request.config
        sandbox = SandboxConfig(
            pod=PodIdentity(config.metadata.uid, config.metadata.namespace, config.metadata.name),
            attempt=config.metadata.attempt,
            hostname=config.hostname,
            log_directory=config.log_directory,
            labels=dict(config.labels),
            annotations=dict(config.annotations),
        )
        return cri.RunPodSandboxResponse(pod_sandbox_id=await self._runtime.run_sandbox(sandbox))

    async def StopPodSandbox(self, request: Any, context: Any) -> Any:
        await self._record("StopPodSandbox", request, context)
        await self._runtime.stop_sandbox(request.pod_sandbox_id)
        return cri.StopPodSandboxResponse()

    async def RemovePodSandbox(self, request: Any, context: Any) -> Any:
        await self._record("RemovePodSandbox", request, context)
        await self._runtime.remove_sandbox(request.pod_sandbox_id)
        return cri.RemovePodSandboxResponse()

    async def ListPodSandbox(self, request: Any, context: Any) -> Any:
        await self._record("ListPodSandbox", request, context)
        wanted = request.filter.label_selector
        items = [await self._sandbox(info.id) for info in await self._runtime.sandboxes()]
        matching = [item for item in items if all(item.labels.get(key) == wanted[key] for key in wanted)]
        return cri.ListPodSandboxResponse(items=matching)

    async def _sandbox(self, sandbox_id: str) -> Any:
        info = next(info for info in await self._runtime.sandboxes() if info.id == sandbox_id)
        return cri.PodSandbox(
            id=info.id,
            metadata=cri.PodSandboxMetadata(
                name=info.pod.name, uid=info.pod.uid, namespace=info.pod.namespace, attempt=info.attempt
            ),
            state=cri.SANDBOX_READY if info.state is SandboxState.READY else cri.SANDBOX_NOTREADY,
            created_at=int(info.created.timestamp() * 1e9),
            labels=dict(info.labels),
            annotations=dict(info.annotations),
        )

    async def PodSandboxStatus(self, request: Any, context: Any) -> Any:
        await self._record("PodSandboxStatus", request, context)
        sandbox = await self._sandbox(request.pod_sandbox_id)
        status = cri.PodSandboxStatus(
            id=sandbox.id,
            metadata=sandbox.metadata,
            state=sandbox.state,
            created_at=sandbox.created_at,
            network=cri.PodSandboxNetworkStatus(ip="10.88.0.5"),
            labels=dict(sandbox.labels),
            annotations=dict(sandbox.annotations),
        )
        return cri.PodSandboxStatusResponse(status=status)

    async def CreateContainer(self, request: Any, context: Any) -> Any:
        await self._record("CreateContainer", request, context)
        config, metadata = request.config, request.sandbox_config.metadata
        container = ContainerConfig(
            pod=PodIdentity(metadata.uid, metadata.namespace, metadata.name),
            name=config.metadata.name,
            attempt=config.metadata.attempt,
            image=config.image.image,
            command=list(config.command),
            args=list(config.args),
            working_dir=config.working_dir,
            env={entry.key: entry.value.decode() for entry in config.envs},
            mounts=[BindMount(mount.host_path, mount.container_path, mount.readonly) for mount in config.mounts],
            cdi_devices=[device.name for device in config.CDI_devices],
            limits=ContainerLimits(oom_score_adj=config.linux.resources.oom_score_adj),
            log_path=config.log_path,
            tty=config.tty,
            stdin=config.stdin,
            labels=dict(config.labels),
            annotations=dict(config.annotations),
        )
        try:
            return cri.CreateContainerResponse(
                container_id=await self._runtime.create_container(request.pod_sandbox_id, container)
            )
        except RuntimeRefusal as error:
            await context.abort(grpc.StatusCode.UNKNOWN, f"failed to inject CDI devices: {error}")

    async def StartContainer(self, request: Any, context: Any) -> Any:
        await self._record("StartContainer", request, context)
        try:
            await self._runtime.start_container(request.container_id)
        except RuntimeRefusal as error:
            await context.abort(grpc.StatusCode.UNKNOWN, str(error))
        return cri.StartContainerResponse()

    async def StopContainer(self, request: Any, context: Any) -> Any:
        await self._record("StopContainer", request, context)
        await self._runtime.stop_container(request.container_id, grace=request.timeout)
        return cri.StopContainerResponse()

    async def RemoveContainer(self, request: Any, context: Any) -> Any:
        await self._record("RemoveContainer", request, context)
        await self._runtime.remove_container(request.container_id)
        return cri.RemoveContainerResponse()

    async def ListContainers(self, request: Any, context: Any) -> Any:
        await self._record("ListContainers", request, context)
        wanted = request.filter.label_selector
        found = [
            cri.Container(
                id=info.id,
                pod_sandbox_id=info.sandbox_id,
                metadata=cri.ContainerMetadata(name=info.name, attempt=info.attempt),
                image=cri.ImageSpec(image=info.image),
                image_ref="sha256:1",
                state=_STATES[info.state],
                labels=dict(info.labels),
                annotations=dict(info.annotations),
            )
            for info in await self._runtime.containers()
            if all(info.labels.get(key) == wanted[key] for key in wanted)
        ]
        return cri.ListContainersResponse(containers=found)

    async def ContainerStatus(self, request: Any, context: Any) -> Any:
        await self._record("ContainerStatus", request, context)
        infos = [info for info in await self._runtime.containers() if info.id == request.container_id]
        if not infos:
            await context.abort(grpc.StatusCode.NOT_FOUND, f'container "{request.container_id}": not found')
        info = infos[0]
        status = cri.ContainerStatus(
            id=info.id,
            metadata=cri.ContainerMetadata(name=info.name, attempt=info.attempt),
            state=_STATES[info.state],
            created_at=int(info.created.timestamp() * 1e9),
            started_at=int(info.started.timestamp() * 1e9) if info.started else 0,
            finished_at=int(info.finished.timestamp() * 1e9) if info.finished else 0,
            exit_code=info.exit_code,
            image=cri.ImageSpec(image=info.image),
            image_ref="sha256:1",
            reason=info.reason,
            log_path=info.log_path,
            labels=dict(info.labels),
            annotations=dict(info.annotations),
        )
        return cri.ContainerStatusResponse(status=status)

    async def ContainerStats(self, request: Any, context: Any) -> Any:
        await self._record("ContainerStats", request, context)
        found = await self._runtime.usage(request.container_id)
        memory = cri.MemoryUsage(working_set_bytes=cri.UInt64Value(value=found.memory_bytes))
        files = cri.FilesystemUsage(used_bytes=cri.UInt64Value(value=found.disk_bytes))
        return cri.ContainerStatsResponse(stats=cri.ContainerStats(memory=memory, writable_layer=files))

    async def ReopenContainerLog(self, request: Any, context: Any) -> Any:
        await self._record("ReopenContainerLog", request, context)
        await self._runtime.reopen_log(request.container_id)
        return cri.ReopenContainerLogResponse()

    async def ExecSync(self, request: Any, context: Any) -> Any:
        await self._record("ExecSync", request, context)
        result = await self._runtime.exec_sync(request.container_id, list(request.cmd), limit=request.timeout)
        return cri.ExecSyncResponse(stdout=result.stdout, stderr=result.stderr, exit_code=result.exit_code)

    async def GetContainerEvents(self, request: Any, context: Any) -> Any:
        self.calls.append(("GetContainerEvents", request))
        if not self.script.has_events:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "unknown method GetContainerEvents")
        if refusal := self.script.refusals.get("GetContainerEvents"):
            await context.abort(*refusal)
        queue: asyncio.Queue[str] = asyncio.Queue()
        self._events.add(queue)
        while True:
            status = cri.PodSandboxStatus(metadata=cri.PodSandboxMetadata(uid=await queue.get()))
            yield cri.ContainerEventResponse(
                container_event_type=cri.CONTAINER_STOPPED_EVENT, pod_sandbox_status=status
            )

    # -- streams

    async def Exec(self, request: Any, context: Any) -> Any:
        await self._record("Exec", request, context)

        async def start() -> ExecStreams:
            return await self._runtime.exec(
                request.container_id, list(request.cmd), tty=request.tty, stdin=request.stdin
            )

        return cri.ExecResponse(url=self._stream("exec", start))

    async def Attach(self, request: Any, context: Any) -> Any:
        await self._record("Attach", request, context)

        async def start() -> ExecStreams:
            return await self._runtime.attach(request.container_id, stdin=request.stdin)

        return cri.AttachResponse(url=self._stream("exec", start))

    async def PortForward(self, request: Any, context: Any) -> Any:
        await self._record("PortForward", request, context)

        async def start() -> Any:
            return request.pod_sandbox_id

        return cri.PortForwardResponse(url=self._stream("port", start))

    def _stream(self, kind: str, start: Callable[[], Awaitable[Any]]) -> str:
        token = str(len(self._streams))
        self._streams[token] = start
        return f"http://127.0.0.1:{self._port}/{kind}/{token}"

    async def _serve_exec(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=("v5.channel.k8s.io", "v4.channel.k8s.io"))
        await socket.prepare(request)
        streams = await self._streams[request.match_info["id"]]()

        async def copy(reader: Any, channel: int) -> None:
            while data := await reader.read():
                await socket.send_bytes(bytes([channel]) + data)

        async def take() -> None:
            async for message in socket:
                if message.type is WSMsgType.BINARY:
                    await _obey(streams, message.data)

        async def give() -> None:
            await asyncio.gather(copy(streams.stdout, 1), copy(streams.stderr, 2))
            await socket.send_bytes(b"\3" + json.dumps(_status(await streams.wait())).encode())

        both = {asyncio.create_task(take()), asyncio.create_task(give())}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        for task in both:
            task.cancel()
        await asyncio.gather(*both, return_exceptions=True)
        await socket.close()
        await streams.close()
        return socket

    async def _serve_port(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
        await socket.prepare(request)
        port = int(request.query["port"])
        for channel in (0, 1):
            await socket.send_bytes(bytes([channel]) + port.to_bytes(2, "little"))
        stream = await self._runtime.port_forward(await self._streams[request.match_info["id"]](), port)
        async for message in socket:
            await stream.write(message.data[1:])
            await socket.send_bytes(b"\0" + await stream.read())
        await stream.close()
        return socket

    # -- image service

    async def ImageStatus(self, request: Any, context: Any) -> Any:
        await self._record("ImageStatus", request, context)
        if request.image.image not in self.script.images:
            return cri.ImageStatusResponse()
        return cri.ImageStatusResponse(image=cri.Image(id="sha256:1", repo_digests=[f"{request.image.image}@sha256:2"]))

    async def PullImage(self, request: Any, context: Any) -> Any:
        await self._record("PullImage", request, context)
        self.script.images.add(request.image.image)
        return cri.PullImageResponse(image_ref="sha256:1")


async def _obey(streams: ExecStreams, data: bytes) -> None:
    channel, content = data[0], data[1:]
    if channel == 0:
        await streams.write_stdin(content)
    elif channel == 255:
        await streams.close_stdin()
    elif channel == 4:
        size = json.loads(content)
        await streams.resize(size["Width"], size["Height"])


def _status(code: int) -> dict[str, Any]:
    if code == 0:
        return {"kind": "Status", "apiVersion": "v1", "status": "Success"}
    causes = [{"reason": "ExitCode", "message": str(code)}]
    return {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}}
