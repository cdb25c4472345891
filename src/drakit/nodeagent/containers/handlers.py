"""What probes and lifecycle hooks do: run a command, get a page, open a connection, ask a gRPC health service.

In:  the handler of a Pod document and the container it is for.
Out: text on success; HandlerFailed, in the kubelet's words, when the container answered badly;
     HandlerBroken when nobody could be asked at all.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from typing import Any

import aiohttp

from drakit.base.clock import Clock
from drakit.base.errors import DeadlineExceeded
from drakit.nodeagent.containers.backoff import go_duration
from drakit.nodeagent.containers.deadlines import within
from drakit.nodeagent.containers.documents import Document
from drakit.nodeagent.containers.failures import HandlerBroken, HandlerFailed
from drakit.nodeagent.containers.grpchealth import check_health
from drakit.nodeagent.runtimes.contract import Runtime, RuntimeFailure, RuntimeRefusal

_MOST_OUTPUT = 10 * 1024
_USER_AGENT = "kube-probe/1.36"


@dataclass(frozen=True, slots=True)
class HandlerTarget:
    """The container that is asked: its runtime id, its part of the Pod document, the address of its pod."""

    container_id: str
    container: Document
    pod_ip: str

    @property
    def host(self) -> str:
        """A pod without an address of its own is on the node's network, and the node is this machine."""
        return self.pod_ip or "127.0.0.1"


class HandlerRunner:
    """Runs handlers of any container of the node; `session` is the caller's to close."""

    def __init__(self, runtime: Runtime, session: aiohttp.ClientSession, *, clock: Clock) -> None:
        self._runtime = runtime
        self._session = session
        self._clock = clock

    async def run(self, handler: Document, target: HandlerTarget, *, seconds: float) -> str:
        """`seconds`: how long it may take; 0 is without end. Raises HandlerFailed or HandlerBroken."""
        if seconds <= 0:
            return await self._run(handler, target)
        try:
            return await within(self._clock, seconds, self._run(handler, target))
        except DeadlineExceeded:
            raise HandlerFailed(_late(handler, target, seconds)) from None

    async def _run(self, handler: Document, target: HandlerTarget) -> str:
        if action := handler.get("exec"):
            return await self._exec(action, target)
        if "httpGet" in handler:
            return await self._http(handler["httpGet"], target)
        if action := handler.get("tcpSocket"):
            return await self._tcp(action, target)
        if action := handler.get("grpc"):
            return await self._grpc(action, target)
        if action := handler.get("sleep"):
            await self._clock.sleep(float(action.get("seconds", 0)))
            return ""
        raise HandlerBroken("missing probe handler")

    async def _exec(self, action: Document, target: HandlerTarget) -> str:
        try:
            result = await self._runtime.exec_sync(target.container_id, action.get("command") or [])
        except (RuntimeFailure, RuntimeRefusal) as error:
            raise HandlerBroken(str(error)) from None
        output = (result.stdout + result.stderr)[:_MOST_OUTPUT].decode("utf-8", "replace")
        if result.exit_code:
            raise HandlerFailed(output or f"command exited with {result.exit_code}", exit_code=result.exit_code)
        return output

    async def _http(self, action: Document, target: HandlerTarget) -> str:
        url = http_url(action, target)
        headers = {"User-Agent": _USER_AGENT, "Accept": "*/*"}
        headers |= {header["name"]: header.get("value", "") for header in action.get("httpHeaders") or ()}
        try:
            # No certificate is checked: the pod is asked whether it is well, not who it is.
            async with self._session.get(url, headers=headers, ssl=False) as response:
                body = await response.content.read(_MOST_OUTPUT)
        except aiohttp.ClientError as error:
            raise HandlerFailed(f'Get "{url}": {_connection_error(error, url)}') from None
        if not 200 <= response.status < 400:
            raise HandlerFailed(f"HTTP probe failed with statuscode: {response.status}")
        return body.decode("utf-8", "replace")

    async def _tcp(self, action: Document, target: HandlerTarget) -> str:
        host, port = action.get("host") or target.host, port_number(action.get("port"), target.container)
        try:
            _, writer = await asyncio.open_connection(host, port)
        except OSError as error:
            raise HandlerFailed(f"dial tcp {host}:{port}: connect: {_reason(error)}") from None
        writer.close()
        return ""

    async def _grpc(self, action: Document, target: HandlerTarget) -> str:
        port = port_number(action.get("port"), target.container)
        await check_health(f"{target.host}:{port}", action.get("service") or "")
        return ""


def http_url(action: Document, target: HandlerTarget) -> str:
    scheme = str(action.get("scheme") or "HTTP").lower()
    host = action.get("host") or target.host
    path = str(action.get("path") or "/")
    place = f"[{host}]" if ":" in host else host
    port = port_number(action.get("port"), target.container)
    return f"{scheme}://{place}:{port}/{path.removeprefix('/')}"


def port_number(port: Any, container: Document) -> int:
    """A number, or the name of one of the container's ports."""
    if isinstance(port, int) or (isinstance(port, str) and port.isdigit()):
        return int(port)
    for known in container.get("ports") or ():
        if known.get("name") == port:
            return int(known["containerPort"])
    raise HandlerBroken(f"couldn't find port: {port!r} in container {container.get('name')!r}")


def _late(handler: Document, target: HandlerTarget, seconds: float) -> str:
    if action := handler.get("exec"):
        return f'command "{" ".join(action.get("command") or [])}" timed out after {go_duration(seconds)}'
    if "httpGet" in handler:
        url = http_url(handler["httpGet"], target)
        return f'Get "{url}": context deadline exceeded (Client.Timeout exceeded while awaiting headers)'
    return f"timeout: not connected within {go_duration(seconds)}"


def _connection_error(error: aiohttp.ClientError, url: str) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):
        place = url.partition("://")[2].partition("/")[0]
        return f"dial tcp {place}: connect: {_reason(error.os_error)}"
    return str(error) or type(error).__name__


def _reason(error: OSError) -> str:
    return (os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)).lower()


__all__ = ["HandlerBroken", "HandlerFailed", "HandlerRunner", "HandlerTarget", "http_url", "port_number"]
