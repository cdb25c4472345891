"""Numbered byte streams over one WebSocket: `channel.k8s.io` and its later versions.

In:  messages whose first byte is the number of their channel (a digit, and base64 after it, in the base64 versions).
Out: the same, from our side.

v5 adds a message that ends a channel: 255, then its number. That is how stdin ends while output still comes.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass

from aiohttp import WSCloseCode, WSMsgType, web

V5 = "v5.channel.k8s.io"
V4 = "v4.channel.k8s.io"
V4_BASE64 = "v4.base64.channel.k8s.io"
V1 = "channel.k8s.io"
V1_BASE64 = "base64.channel.k8s.io"

MOST_MESSAGE_BYTES = 4 * 1024 * 1024
PIECE = 32 * 1024
"""What is sent at a time: small enough that a terminal's resize is not kept waiting for long."""
_CLOSE = 255


@dataclass(frozen=True, slots=True)
class ChannelMessage:
    channel: int
    data: bytes = b""
    closed: bool = False


class ChannelError(Exception):
    """The client sent what is no message of a channel."""


def chosen_protocol(request: web.Request, supported: Sequence[str]) -> str:
    """The first protocol of the client's list that is served here; empty when it names none.

    Raise an answer 400 for a list that has none of them.
    """
    header = ",".join(request.headers.getall("Sec-WebSocket-Protocol", ()))
    wanted = [name.strip() for name in header.split(",") if name.strip()]
    if not wanted:
        return ""
    # In the client's order: it lists what it likes best first.
    for name in wanted:
        if name in supported:
            return name
    served = " ".join(supported)
    raise web.HTTPBadRequest(text=f"requested protocol(s) are not supported: [{' '.join(wanted)}]; supports [{served}]")


async def open_socket(request: web.Request, protocol: str) -> web.WebSocketResponse:
    """Finish the handshake. Closing is the caller's."""
    socket = web.WebSocketResponse(
        protocols=(protocol,) if protocol else (), max_msg_size=MOST_MESSAGE_BYTES, compress=False
    )
    await socket.prepare(request)
    return socket


class Channels:
    """Sending waits while the client does not read, so that nothing piles up here."""

    def __init__(self, socket: web.WebSocketResponse, protocol: str) -> None:
        self._socket = socket
        self._base64 = protocol in (V4_BASE64, V1_BASE64)
        self._closes_channels = protocol == V5
        self.greets = protocol != V5

    async def send(self, channel: int, data: bytes) -> None:
        """Nothing is sent on a connection that is gone: whoever receives sees its end."""
        if self._socket.closed:
            return
        try:
            # At least once: an empty message is the greeting of the protocols before v5.
            for offset in range(0, max(len(data), 1), PIECE):
                await self._send_piece(channel, data[offset : offset + PIECE])
        except ConnectionError:
            return

    async def _send_piece(self, channel: int, piece: bytes) -> None:
        if self._base64:
            await self._socket.send_str(chr(48 + channel) + base64.b64encode(piece).decode())
        else:
            await self._socket.send_bytes(bytes((channel,)) + piece)

    async def receive(self) -> ChannelMessage | None:
        """None once the client has gone. Raise ChannelError."""
        message = await self._socket.receive()
        if message.type is WSMsgType.BINARY:
            data: bytes = message.data
        elif message.type is WSMsgType.TEXT:
            data = message.data.encode()
        else:
            return None
        return self._parsed(data)

    def _parsed(self, data: bytes) -> ChannelMessage:
        if not data:
            raise ChannelError("a message without a channel")
        if self._closes_channels and data[0] == _CLOSE:
            if len(data) < 2:
                raise ChannelError("the end of a channel without its number")
            return ChannelMessage(data[1], closed=True)
        if not self._base64:
            return ChannelMessage(data[0], data[1:])
        try:
            return ChannelMessage(data[0] - 48, base64.b64decode(data[1:], validate=True))
        except binascii.Error as error:
            raise ChannelError(f"a message that is not base64: {error}") from None

    async def close(self, error: str = "") -> None:
        """Say goodbye: normally, or with what the client did wrong."""
        code = WSCloseCode.PROTOCOL_ERROR if error else WSCloseCode.OK
        # A control frame of WebSocket carries at most 125 bytes, two of them for the code.
        await self._socket.close(code=code, message=error.encode()[:120])
