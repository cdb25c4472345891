"""Scenes and objects for the tests of portforward, here and elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp

from drakit.nodeagent.server.spdy import frames
from drakit.nodeagent.server.spdy.headers import HeaderPacker
from tests.nodeagent.server.hosts import Node

PATH = "/portForward/default/web"
TUNNEL = "SPDY/3.1+portforward.k8s.io"
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def a_service(serve: Serve) -> AsyncIterator[int]:
    """A TCP server, as a pod would have one."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Back with everything once it has all come: only a half close lets it answer."""
    writer.write(b"got " + await reader.read())
    await writer.drain()


async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"hello")
    await writer.drain()


class Tunnel:
    """The client's side of SPDY in a WebSocket."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._packer = HeaderPacker()
        self._reader = frames.FrameReader()
        self._next = 1

    async def open(self, kind: str, port: int | str, request: str = "0") -> int:
        number, self._next = self._next, self._next + 2
        headers = {"streamType": kind, "port": str(port)} | ({"requestID": request} if request else {})
        await self.send(frames.syn_stream(number, self._packer.pack(headers)))
        return number

    async def connect(self, port: int, request: str = "0") -> tuple[int, int]:
        """Data and error stream; a client ends the error stream at once, for it only reads from it."""
        errors = await self.open("error", port, request)
        await self.send(frames.data_frame(errors, b"", fin=True))
        return await self.open("data", port, request), errors

    async def send(self, data: bytes) -> None:
        await self._socket.send_bytes(data)

    async def frames(self) -> AsyncIterator[frames.Frame]:
        async for message in self._socket:
            for frame in self._reader.feed(message.data):
                yield frame

    async def until_finished(self, *streams: int) -> dict[int, bytes]:
        """What came on these streams until each of them ended, or was reset."""
        got, left = {stream: bytearray() for stream in streams}, set(streams)
        async for frame in self.frames():
            if isinstance(frame, frames.DataFrame):
                got[frame.stream] += frame.data
            if (isinstance(frame, frames.DataFrame) and frame.fin) or (
                isinstance(frame, frames.ControlFrame) and frame.kind == frames.RST_STREAM
            ):
                left.discard(frame.stream)
            if not left:
                return {stream: bytes(data) for stream, data in got.items()}
        raise AssertionError(f"the connection ended before streams {left}")


@asynccontextmanager
async def tunnel(node: Node) -> AsyncIterator[Tunnel]:
    async with node.session() as session, session.ws_connect(PATH, protocols=(TUNNEL,)) as socket:
        assert socket.protocol == TUNNEL
        yield Tunnel(socket)
