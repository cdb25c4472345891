"""Streams of a CRI runtime: exec, attach and port-forward over WebSocket at the address that the runtime names.

Each message starts with the number of its channel: 0 stdin, 1 stdout, 2 stderr, 3 the end as a Status, 4 window sizes.
Port-forward has data on 0 and errors on 1, and each starts with the port in two bytes. `v5.channel.k8s.io` can close
stdin; with `v4` it stays open until the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Sequence

import aiohttp

from drakit.nodeagent.runtimes.bytepipes import BytePipe
from drakit.nodeagent.runtimes.contract import ByteReader, RuntimeFailure

V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
_STDIN, _STDOUT, _STDERR, _END, _RESIZE, _CLOSE = 0, 1, 2, 3, 4, 255
_MOST_MESSAGE = 16 << 20
_UNKNOWN_EXIT = 1


async def open_socket(
    session: aiohttp.ClientSession, url: str, protocols: Sequence[str] = (V5, V4)
) -> aiohttp.ClientWebSocketResponse:
    try:
        return await session.ws_connect(url, protocols=protocols, max_msg_size=_MOST_MESSAGE)
    except aiohttp.ClientError as error:
        raise RuntimeFailure(f"the runtime's stream at {url} does not open: {error}") from None


class SocketSession:
    """Keeps the ExecStreams contract."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, *, stdin: bool) -> None:
        self._socket = socket
        self._stdin = stdin
        self._stdout = BytePipe()
        self._stderr = BytePipe()
        self._exit: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._pump = asyncio.create_task(self._deal())

    @property
    def stdout(self) -> ByteReader:
        return self._stdout

    @property
    def stderr(self) -> ByteReader:
        return self._stderr

    async def write_stdin(self, data: bytes) -> None:
        if self._stdin and data:
            await self._send(bytes([_STDIN]) + data)

    async def close_stdin(self) -> None:
        # v4 cannot close a single stream: closing stdin would mean to close the whole connection, output included.
        if self._stdin and self._socket.protocol == V5:
            await self._send(bytes([_CLOSE, _STDIN]))

    async def resize(self, width: int, height: int) -> None:
        await self._send(bytes([_RESIZE]) + json.dumps({"Width": width, "Height": height}).encode())

    async def wait(self) -> int:
        # Several callers may wait; cancelling one of them must not cancel the shared future.
        return await asyncio.shield(self._exit)

    async def close(self) -> None:
        await self._socket.close()
        self._pump.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._pump

    async def _send(self, message: bytes) -> None:
        with contextlib.suppress(ConnectionError):
            await self._socket.send_bytes(message)

    async def _deal(self) -> None:
        try:
            async for message in self._socket:
                if message.type is aiohttp.WSMsgType.BINARY and message.data:
                    await self._take(message.data[0], message.data[1:])
        finally:
            # The connection ended without a Status: the exit code is unknown, and waiters must not hang.
            if not self._exit.done():
                self._exit.set_result(_UNKNOWN_EXIT)
            await self._stdout.end()
            await self._stderr.end()

    async def _take(self, channel: int, data: bytes) -> None:
        if channel == _STDOUT:
            await self._stdout.write(data)
        elif channel == _STDERR:
            await self._stderr.write(data)
        elif channel == _END and not self._exit.done():
            self._exit.set_result(exit_code(data))


class SocketForward:
    """Keeps the ByteStream contract."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        # The first message of either channel only repeats the port.
        self._greetings = {0, 1}

    async def read(self) -> bytes:
        async for message in self._socket:
            if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
                continue
            channel, data = message.data[0], message.data[1:]
            if channel in self._greetings:  # the port, which we know
                self._greetings.discard(channel)
                data = data[2:]
            if channel == 1 and data:
                raise RuntimeFailure(data.decode("utf-8", "replace"))
            if channel == 0 and data:
                return bytes(data)
        return b""

    async def write(self, data: bytes) -> None:
        try:
            await self._socket.send_bytes(b"\0" + data)
        except ConnectionError as error:
            raise RuntimeFailure(f"the connection is lost: {error}") from None

    async def close_write(self) -> None:
        """The protocol has no word for it; the peer sees the end when the stream closes."""

    async def close(self) -> None:
        await self._socket.close()


def exit_code(status: bytes) -> int:
    """From the Status that ends an exec: 0 for Success, else the cause ExitCode."""
    try:
        document = json.loads(status)
    except ValueError:
        return _UNKNOWN_EXIT
    if document.get("status") == "Success":
        return 0
    for cause in (document.get("details") or {}).get("causes") or ():
        if cause.get("reason") == "ExitCode":
            return int(cause["message"])
    return _UNKNOWN_EXIT
