"""Connections that were HTTP and carry bytes of another protocol now: inside of a WebSocket, or on the socket itself.

In:  an upgrade request.
Out: bytes as they come, bytes to be sent; sending waits for a client that does not read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, cast

from aiohttp import WSCloseCode, WSMsgType, web

from drakit.nodeagent.server.spdy import ProtocolError

if TYPE_CHECKING:
    from aiohttp._websocket.reader import WebSocketReader

SPDY = "SPDY/3.1"
VERSION_HEADER = "X-Stream-Protocol-Version"
_PIECE = 64 * 1024


class ByteConnection(Protocol):
    async def receive(self) -> bytes:
        """What came; empty at the end. Raise ProtocolError for what does not belong here."""
        ...

    async def send(self, data: bytes) -> None:
        """Nothing is sent on a connection that is gone: whoever receives sees its end."""
        ...

    async def close(self, error: str = "") -> None: ...


class WebSocketConnection:
    """Bytes in binary messages, cut anywhere."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket

    async def receive(self) -> bytes:
        while True:
            message = await self._socket.receive()
            if message.type is WSMsgType.TEXT:
                raise ProtocolError("SPDY goes in binary messages")
            if message.type is not WSMsgType.BINARY:
                return b""
            if message.data:
                data: bytes = message.data
                return data

    async def send(self, data: bytes) -> None:
        if self._socket.closed:
            return
        try:
            await self._socket.send_bytes(data)
        except ConnectionError:
            return

    async def close(self, error: str = "") -> None:
        code = WSCloseCode.PROTOCOL_ERROR if error else WSCloseCode.OK
        await self._socket.close(code=code, message=error.encode()[:120])


class UpgradedConnection(web.StreamResponse):
    """The socket itself, after `101 Switching Protocols`. It is the response of its request."""

    _length_check = False

    def __init__(self, protocol: str) -> None:
        headers = {"Connection": "Upgrade", "Upgrade": SPDY}
        if protocol:
            headers[VERSION_HEADER] = protocol
        super().__init__(status=101, headers=headers)
        self.force_close()  # there is no next request on it
        self.protocol = protocol
        self._reader = asyncio.StreamReader(limit=_PIECE)

    async def open(self, request: web.Request) -> None:
        """Answer, and take what comes from then on away from HTTP."""
        transport = request.transport
        if transport is None:
            raise ConnectionResetError("the client has gone")
        # So that the reader can pause the socket: bytes of a fast client do not pile up.
        self._reader.set_transport(transport)
        await self.prepare(request)
        await self.write(b"")  # the head goes out now
        # aiohttp names the class that it uses itself; what it calls is `feed_data` and `feed_eof`.
        request.protocol.set_parser(cast("WebSocketReader", _Feed(self._reader)))

    async def receive(self) -> bytes:
        try:
            return await self._reader.read(_PIECE)
        except OSError:
            return b""

    async def send(self, data: bytes) -> None:
        if self._eof_sent:
            return
        try:
            await self.write(data)
        except ConnectionError:
            return

    async def close(self, error: str = "") -> None:  # noqa: ARG002 - there is no place for words
        try:
            await self.write_eof()
        except ConnectionError:
            return


async def open_spdy(request: web.Request, supported: Sequence[str]) -> UpgradedConnection:
    """Finish the handshake, with the first protocol of the client's list that is served here.

    A client that names none speaks the oldest. Raise an answer 403 for a list that has none of them.
    """
    header = ",".join(request.headers.getall(VERSION_HEADER, ()))
    wanted = [name.strip() for name in header.split(",") if name.strip()]
    chosen = next((name for name in wanted if name in supported), "")
    if wanted and not chosen:
        accepted = {"X-Accepted-Stream-Protocol-Versions": ",".join(supported)}
        text = f"unable to upgrade: unable to negotiate protocol: client supports [{' '.join(wanted)}], "
        raise web.HTTPForbidden(text=f"{text}server accepts [{' '.join(supported)}]", headers=accepted)
    connection = UpgradedConnection(chosen)
    await connection.open(request)
    return connection


class _Feed:
    """How aiohttp hands over what comes on a connection that is no longer its own."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        self._reader.feed_data(data)
        return False, b""

    def feed_eof(self) -> None:
        self._reader.feed_eof()

    def set_exception(self, error: BaseException, cause: BaseException | None = None) -> None:  # noqa: ARG002
        self._reader.feed_eof()
