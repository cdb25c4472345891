# ruff: noqa: ARG002  (a stand-in takes what the contract hands it)
"""A node with real processes behind its server, and clients of it: what the tests of this folder stand on."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import ssl
import struct
import sys
import termios
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import aiohttp

from drakit.apiserver.auth.certificates import Authority
from drakit.apiserver.http.listener import bind
from drakit.base.clock import Clock, RealClock
from drakit.nodeagent.runtimes.contract import (
    ContainerInfo,
    ContainerState,
    ExecResult,
    ExecStreams,
    PodIdentity,
    Runtime,
    RuntimeFailure,
    RuntimeRefusal,
    SandboxInfo,
    SandboxState,
)
from drakit.nodeagent.server import NodeAccess, NodeCertificates, NodeServer

START = datetime(2026, 1, 1, tzinfo=UTC)
POD = PodIdentity("uid-1", "default", "web")


class Output:
    def __init__(self, reader: asyncio.StreamReader | None) -> None:
        self._reader = reader
        self.bytes = 0

    async def read(self) -> bytes:
        piece = await self._reader.read(65536) if self._reader is not None else b""
        self.bytes += len(piece)
        return piece


class Process:
    """A command on this machine, as a runtime would run it in a container."""

    def __init__(self, process: asyncio.subprocess.Process, *, terminal: int | None = None) -> None:
        self.process = process
        self.sizes: list[tuple[int, int]] = []
        self.closed = False
        self._terminal = terminal
        self.stdout = Output(process.stdout)
        self.stderr = Output(process.stderr)

    async def write_stdin(self, data: bytes) -> None:
        stdin = self.process.stdin
        if stdin is not None:
            with suppress(ConnectionError):
                stdin.write(data)
                await stdin.drain()

    async def close_stdin(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()

    async def resize(self, width: int, height: int) -> None:
        self.sizes.append((width, height))
        if self._terminal is not None:
            fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    async def wait(self) -> int:
        return await self.process.wait()

    async def close(self) -> None:
        self.closed = True
        with suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()
        if self._terminal is not None:
            os.close(self._terminal)
            self._terminal = None


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def read(self) -> bytes:
        return await self._reader.read(65536)

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        try:
            await self._writer.drain()
        except ConnectionError as error:
            raise RuntimeFailure(str(error)) from None

    async def close_write(self) -> None:
        with suppress(OSError):
            self._writer.write_eof()

    async def close(self) -> None:
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()


class Machine:
    """The part of a runtime that the server uses; a container is no more than an entry here."""

    def __init__(self) -> None:
        self.list: list[ContainerInfo] = []
        self.boxes = [SandboxInfo("box", POD, 0, SandboxState.READY, START)]
        self.started: list[Process] = []

    def add(self, name: str, state: ContainerState, log: Path | None = None, *, attempt: int = 0) -> ContainerInfo:
        info = ContainerInfo(
            id=f"{name}-{attempt}",
            sandbox_id="box",
            pod=POD,
            name=name,
            attempt=attempt,
            state=state,
            created=START + timedelta(seconds=attempt),
            started=START,
            log_path=str(log or ""),
        )
        self.list.append(info)
        return info

    def set_state(self, container_id: str, state: ContainerState) -> None:
        self.list = [replace(each, state=state) if each.id == container_id else each for each in self.list]

    async def containers(self) -> list[ContainerInfo]:
        return self.list

    async def sandboxes(self) -> list[SandboxInfo]:
        return self.boxes

    async def exec(
        self, container_id: str, command: Sequence[str], *, tty: bool = False, stdin: bool = False
    ) -> ExecStreams:
        pipe = asyncio.subprocess.PIPE
        try:
            if tty:
                process = await self._on_terminal(command)
            else:
                process = Process(
                    await asyncio.create_subprocess_exec(
                        *command, stdin=pipe if stdin else asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe
                    )
                )
        except OSError as error:
            raise RuntimeRefusal(f"exec: {command[0]}: {error.strerror}") from None
        self.started.append(process)
        return process

    async def _on_terminal(self, command: Sequence[str]) -> Process:
        """Its output goes through a pipe all the same: `stty` needs the terminal on stdin only."""
        ours, theirs = pty.openpty()
        pipe = asyncio.subprocess.PIPE
        made = await asyncio.create_subprocess_exec(
            *command, stdin=theirs, stdout=pipe, stderr=asyncio.subprocess.STDOUT
        )
        os.close(theirs)
        return Process(made, terminal=ours)

    async def exec_sync(self, container_id: str, command: Sequence[str], *, limit: float = 0) -> ExecResult:
        made = await asyncio.create_subprocess_exec(*command, stdout=-1, stderr=-1)
        stdout, stderr = await made.communicate()
        return ExecResult(made.returncode or 0, stdout, stderr)

    async def attach(self, container_id: str, *, stdin: bool = False) -> ExecStreams:
        return await self.exec(container_id, ["cat"], stdin=stdin)

    async def port_forward(self, sandbox_id: str, port: int) -> Connection:
        try:
            return Connection(*await asyncio.open_connection("127.0.0.1", port))
        except OSError as error:
            raise RuntimeFailure(f"connect to port {port}: {error.strerror or error}") from None


def running_pod(**changes: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": POD.name, "namespace": POD.namespace, "uid": POD.uid},
        "spec": {"nodeName": "node-a", "containers": [{"name": "main", "image": "example.com/app:1"}]},
        "status": {},
        **changes,
    }


class Pods:
    def __init__(self, *documents: dict[str, Any]) -> None:
        self.documents = list(documents)

    def find(self, namespace: str, name: str) -> dict[str, Any] | None:
        for document in self.documents:
            if (document["metadata"]["namespace"], document["metadata"]["name"]) == (namespace, name):
                return document
        return None

    def all(self) -> Iterable[dict[str, Any]]:
        return self.documents


class Node:
    """A server of a node, what is behind it, and how to reach it."""

    def __init__(self, directory: Path) -> None:
        now = datetime.now(UTC)
        self.directory = directory
        self.authority = Authority(directory / "pki", now)
        self.stranger = Authority(directory / "other-pki", now)
        self.machine = Machine()
        self.pods = Pods(running_pod())
        self.log = directory / "0.log"
        self.url = ""

    def certificates(self) -> NodeCertificates:
        pair = self.authority.server(("127.0.0.1", "localhost"))
        return NodeCertificates(pair.certificate, pair.key, self.authority.files.certificate)

    def client_context(self, user: str = "api-server", *, authority: Authority | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.authority.files.certificate))
        if user:
            pair = (authority or self.authority).client(user, ("system:masters",), user)
            context.load_cert_chain(pair.certificate, pair.key)
        return context

    @asynccontextmanager
    async def session(self, user: str = "api-server", **headers: str) -> AsyncIterator[aiohttp.ClientSession]:
        connector = aiohttp.TCPConnector(ssl=self.client_context(user))
        async with aiohttp.ClientSession(self.url, connector=connector, headers=headers) as session:
            yield session


class EverybodyMay:
    """Whoever has a certificate is let in."""

    async def refusal(self, user: Any, method: str, path: str) -> str:
        return ""


class ByCertificate:
    async def user(self, certificate: bytes | None, authorization: str) -> Any:
        from drakit.nodeagent.server.authentication import certificate_user

        return certificate_user(certificate) if certificate else None


@asynccontextmanager
async def a_node(
    directory: Path,
    *,
    clock: Clock | None = None,
    access: NodeAccess | None = None,
    runtime: Runtime | None = None,
) -> AsyncIterator[Node]:
    node = Node(directory)
    async with NodeServer(
        bind("127.0.0.1", 0),
        node.certificates(),
        access or NodeAccess(ByCertificate(), EverybodyMay()),
        node_name="node-a",
        pods=node.pods,
        runtime=runtime or cast("Runtime", node.machine),  # the part of a runtime that a server uses
        clock=clock or RealClock(),
        metrics=lambda: b"up 1\n",
    ) as server:
        node.url = f"https://127.0.0.1:{server.port}"
        yield node


def record(text: str, *, stream: str = "stdout", tag: str = "F", second: int = 0) -> str:
    return f"2026-01-01T00:00:{second:02d}.000000000Z {stream} {tag} {text}\n"


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


async def came_true(condition: Callable[[], bool]) -> None:
    """Wait for what happens in other tasks and sockets; what never does is a failure."""
    for _ in range(10_000):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it never came true")


async def settled(count: Callable[[], int]) -> int:
    """A number that grows, once it does not grow any more."""
    last, same = -1, 0
    while same < 20:
        await asyncio.sleep(0.01)
        last, same = count(), same + 1 if count() == last else 0
    return last


async def run_command(
    node: Node, command: Sequence[str], *, protocol: str = "v5.channel.k8s.io", stdin: bytes | None = None
) -> dict[int, bytes]:
    """What came on each channel until the server closed it."""
    query = [("output", "1"), ("error", "1"), *(("command", word) for word in command)]
    if stdin is not None:
        query.append(("input", "1"))
    async with node.session() as session, session.ws_connect(
        "/exec/default/web/main", params=query, protocols=(protocol,)
    ) as socket:  # fmt: skip
        if stdin is not None:
            for offset in range(0, len(stdin), 30_000):
                await socket.send_bytes(b"\x00" + stdin[offset : offset + 30_000])
            await socket.send_bytes(b"\xff\x00")
        return await gathered(socket)


async def gathered(socket: aiohttp.ClientWebSocketResponse) -> dict[int, bytes]:
    channels: dict[int, bytearray] = {}
    async for message in socket:
        data: bytes = message.data
        channels.setdefault(data[0], bytearray()).extend(data[1:])
    return {channel: bytes(data) for channel, data in channels.items()}
