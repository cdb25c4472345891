"""The pages of a node that stream: logs, exec, attach, port-forward.

In:  requests whose caller is known and may do what it asks.
Out: text that goes on as long as the log does; WebSocket or SPDY for the rest.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path

from aiohttp import web

from drakit.api.podstreams import (
    PodLogOptions,
    PodStreamOptions,
    log_option_problems,
    parse_log_options,
    parse_node_stream_options,
    parse_ports,
)
from drakit.base.clock import Clock
from drakit.base.errors import DecodeError, DrakitError
from drakit.nodeagent.runtimes.contract import ByteStream, ContainerInfo, ExecStreams, Runtime
from drakit.nodeagent.server import portforward, remotecommand
from drakit.nodeagent.server.channels import ChannelError, Channels, chosen_protocol, open_socket
from drakit.nodeagent.server.connections import SPDY, WebSocketConnection, open_spdy
from drakit.nodeagent.server.logfiles import LogSelection, read_log
from drakit.nodeagent.server.lookup import (
    NodeRequestError,
    PodDocument,
    PodSource,
    find_pod,
    is_running,
    logged_container,
    ready_sandbox,
    running_container,
)
from drakit.nodeagent.server.spdychannels import SpdyChannels

log = logging.getLogger("drakit.nodeagent.server")


class StreamPages:
    def __init__(self, pods: PodSource, runtime: Runtime, clock: Clock) -> None:
        self._pods = pods
        self._runtime = runtime
        self._clock = clock

    def routes(self) -> list[web.RouteDef]:
        """The kubelet's paths; a uid in the path means that pod and no other of its name."""
        container = "/{namespace}/{pod}/{container}"
        with_uid = "/{namespace}/{pod}/{uid}/{container}"
        routes = [web.get("/containerLogs" + container, self.logs)]
        for path in (container, with_uid):
            routes += _both("/exec" + path, self.exec)
            routes += _both("/attach" + path, self.attach)
            routes.append(web.post("/run" + path, self.run))
        for path in ("/{namespace}/{pod}", "/{namespace}/{pod}/{uid}"):
            routes += _both("/portForward" + path, self.port_forward)
        return routes

    async def logs(self, request: web.Request) -> web.StreamResponse:
        options = _log_options(request)
        pod = self._pod(request)
        name = request.match_info["container"]
        container = await logged_container(self._runtime, pod, name, previous=options.previous)
        path = _log_file(container)
        response = web.StreamResponse(headers={"content-type": "text/plain"})
        await response.prepare(request)
        await response.write(b"")  # the head goes out now, not with the first line
        selection = LogSelection(
            timestamps=options.timestamps, since=self._since(options), limit_bytes=options.limit_bytes
        )
        follow = (lambda: is_running(self._runtime, container.id)) if options.follow else None
        lines = read_log(path, selection, clock=self._clock, tail=options.tail_lines, follow=follow)
        # A client that goes away must close the log file now, not when the generator is collected.
        async with contextlib.aclosing(lines):
            async for text in lines:
                await response.write(text)
        await response.write_eof()
        return response

    async def exec(self, request: web.Request) -> web.StreamResponse:
        options = _stream_options(request)
        if not options.command:
            raise NodeRequestError(400, "you must specify at least one command for the container")
        container = await self._running(request)

        async def start() -> ExecStreams:
            return await self._runtime.exec(container, options.command, tty=options.tty, stdin=options.stdin)

        return await self._converse(request, options, start, attached=False)

    async def attach(self, request: web.Request) -> web.StreamResponse:
        options = _stream_options(request)
        container = await self._running(request)

        async def start() -> ExecStreams:
            return await self._runtime.attach(container, stdin=options.stdin)

        return await self._converse(request, options, start, attached=True)

    async def run(self, request: web.Request) -> web.Response:
        """A command to its end, and what it wrote; for scripts on the node."""
        container = await self._running(request)
        try:
            result = await self._runtime.exec_sync(container, request.query.get("cmd", "").split(" "))
        except DrakitError as error:
            raise NodeRequestError(500, str(error)) from None
        if result.exit_code:
            raise NodeRequestError(
                500, f"command exited with {result.exit_code}: {result.stderr.decode(errors='replace')}"
            )
        return web.Response(body=result.stdout + result.stderr)

    async def port_forward(self, request: web.Request) -> web.StreamResponse:
        pod = self._pod(request)
        sandbox = await ready_sandbox(self._runtime, pod)
        about = f"pod {pod['metadata']['name']}, uid {pod['metadata'].get('uid', '')}"

        def connect(port: int) -> Awaitable[ByteStream]:
            return self._runtime.port_forward(sandbox.id, port)

        if _wants_spdy(request):
            upgraded = await open_spdy(request, portforward.SPDY_PROTOCOLS)
            await portforward.SpdyForward(upgraded, connect, about=about).run()
            return upgraded
        protocol = chosen_protocol(request, portforward.PROTOCOLS)
        # In the tunnel every SPDY stream names its own port.
        ports = () if protocol == portforward.TUNNEL else _ports(request)
        socket = await open_socket(request, protocol)
        if protocol == portforward.TUNNEL:
            await portforward.SpdyForward(WebSocketConnection(socket), connect, about=about).run()
        else:
            await portforward.ChannelForward(Channels(socket, protocol), ports, connect, about=about).run()
        return socket

    async def _converse(
        self,
        request: web.Request,
        options: PodStreamOptions,
        start: Callable[[], Awaitable[ExecStreams]],
        *,
        attached: bool,
    ) -> web.StreamResponse:
        if _wants_spdy(request):
            return await self._converse_by_spdy(request, options, start, attached=attached)
        protocol = chosen_protocol(request, remotecommand.PROTOCOLS)
        socket = await open_socket(request, protocol)
        command = remotecommand.RemoteCommand(Channels(socket, protocol), options, protocol=protocol, attached=attached)
        await command.run(start)
        return socket

    async def _converse_by_spdy(
        self,
        request: web.Request,
        options: PodStreamOptions,
        start: Callable[[], Awaitable[ExecStreams]],
        *,
        attached: bool,
    ) -> web.StreamResponse:
        upgraded = await open_spdy(request, remotecommand.SPDY_PROTOCOLS)
        try:
            async with SpdyChannels(upgraded, options) as channels:
                protocol = upgraded.protocol
                await remotecommand.RemoteCommand(channels, options, protocol=protocol, attached=attached).run(start)
        except ChannelError as error:
            log.info("%s: %s", request.path, error)
        return upgraded

    def _pod(self, request: web.Request) -> PodDocument:
        found = request.match_info
        return find_pod(self._pods, found["namespace"], found["pod"], found.get("uid", ""))

    async def _running(self, request: web.Request) -> str:
        container = await running_container(self._runtime, self._pod(request), request.match_info["container"])
        return container.id

    def _since(self, options: PodLogOptions) -> datetime | None:
        if options.since_seconds is not None:
            return self._clock.now() - timedelta(seconds=options.since_seconds)
        return options.since_time


def _log_file(container: ContainerInfo) -> Path:
    path = Path(container.log_path)
    if not path.is_file():
        raise NodeRequestError(400, f'failed to open log file "{container.log_path}": no such file')
    return path


def _both(path: str, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> list[web.RouteDef]:
    return [web.get(path, handler), web.post(path, handler)]


def _query(request: web.Request) -> list[tuple[str, str]]:
    return list(request.query.items())


def _log_options(request: web.Request) -> PodLogOptions:
    try:
        options = parse_log_options(_query(request))
    except DecodeError as error:
        raise NodeRequestError(400, f"Unable to decode query: {error}") from None
    if problems := list(log_option_problems(options)):
        raise NodeRequestError(422, "Invalid request: " + "; ".join(str(problem) for problem in problems))
    return options


def _stream_options(request: web.Request) -> PodStreamOptions:
    options = parse_node_stream_options(_query(request))
    if options.tty and options.stderr:
        # With a terminal there is one stream; kubelets drop the wish as well.
        options = PodStreamOptions(stdin=options.stdin, stdout=options.stdout, tty=True, command=options.command)
    if not (options.stdin or options.stdout or options.stderr):
        raise NodeRequestError(400, "you must specify at least 1 of stdin, stdout, stderr")
    return options


def _ports(request: web.Request) -> tuple[int, ...]:
    try:
        ports = parse_ports(_query(request), "port")
    except DecodeError as error:
        raise NodeRequestError(400, str(error)) from None
    if not ports:
        raise NodeRequestError(400, 'query parameter "port" is required')
    if len(ports) > portforward.MOST_PORTS:
        raise NodeRequestError(400, f"{len(ports)} ports; at most {portforward.MOST_PORTS} go over one connection")
    return ports


def _wants_spdy(request: web.Request) -> bool:
    """Or a WebSocket; there is no third way."""
    upgrade = request.headers.get("Upgrade", "").lower()
    if not upgrade:
        raise NodeRequestError(400, "Upgrade request required")
    if upgrade not in (SPDY.lower(), "websocket"):
        raise NodeRequestError(400, f'exec, attach and port-forward go over WebSocket or {SPDY}, not over "{upgrade}"')
    return upgrade != "websocket"
