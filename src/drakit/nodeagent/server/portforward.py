"""Port-forward: connections of a client to TCP ports of a pod.

In:  a WebSocket with a pair of channels for each port of the query; or SPDY with a pair of streams for each connection,
     within a WebSocket (`SPDY/3.1+portforward.k8s.io`, kubectl 1.31 and newer) or by itself (before).
Out: bytes to and from the port; on the second channel or stream of a pair, why it did not work.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from drakit.api.podstreams import parse_port
from drakit.base.errors import DecodeError, DrakitError
from drakit.nodeagent.runtimes.contract import ByteStream
from drakit.nodeagent.server.channels import V4, V4_BASE64, ChannelError, Channels
from drakit.nodeagent.server.connections import ByteConnection
from drakit.nodeagent.server.spdy import ProtocolError, Session, SpdyStream, StreamRefused

log = logging.getLogger("drakit.nodeagent.server")

TUNNEL = "SPDY/3.1+portforward.k8s.io"
PROTOCOLS = (TUNNEL, V4, V4_BASE64)
SPDY_PROTOCOLS = ("portforward.k8s.io",)
MOST_PORTS = 100
_UNREAD_PIECES = 16

Connect = Callable[[int], Awaitable[ByteStream]]


class Ends(Protocol):
    """The client's end of one forwarded connection."""

    async def read(self) -> bytes:
        """Empty at the end."""
        ...

    async def write(self, data: bytes) -> None: ...

    async def finish(self) -> None:
        """Nothing more comes from the port."""
        ...

    async def lost(self) -> None:
        """Returns once the client has dropped the connection, without another word."""
        ...


async def join(client: Ends, port: ByteStream) -> None:
    """Copy in both directions until the port has ended or the client dropped the connection.

    A client that has sent everything may still read, so its end of input does not end the copy.
    """
    outward = asyncio.create_task(_to_port(client, port))
    inward = asyncio.create_task(_to_client(client, port))
    dropped = asyncio.create_task(client.lost())
    try:
        # What a server still has to say comes; what a client says to a server that has hung up does not matter.
        await asyncio.wait((inward, dropped), return_when=asyncio.FIRST_COMPLETED)
        if inward.done():
            inward.result()
    finally:
        for task in (outward, inward, dropped):
            task.cancel()
        await asyncio.gather(outward, inward, dropped, return_exceptions=True)


async def _to_port(client: Ends, port: ByteStream) -> None:
    while piece := await client.read():
        await port.write(piece)
    await port.close_write()


async def _to_client(client: Ends, port: ByteStream) -> None:
    while piece := await port.read():
        await client.write(piece)
    await client.finish()


class ChannelForward:
    """The classic way: every port has one connection, made at once, and the WebSocket ends with the last of them."""

    def __init__(self, channels: Channels, ports: Sequence[int], connect: Connect, *, about: str) -> None:
        self._channels = channels
        self._connect = connect
        self._about = about
        self._pairs = [_ChannelPair(channels, 2 * index, port) for index, port in enumerate(ports)]

    async def run(self) -> None:
        # Before any data: the client takes the first message of each channel for the port.
        for pair in self._pairs:
            await pair.announce()
        listening = asyncio.create_task(self._listen())
        forwards = asyncio.gather(*(self._forward(pair) for pair in self._pairs))
        problem = ""
        try:
            await asyncio.wait((listening, forwards), return_when=asyncio.FIRST_COMPLETED)
            if listening.done() and isinstance(error := listening.exception(), ChannelError):
                problem = str(error)
        finally:
            for task in (listening, forwards):
                task.cancel()
            await asyncio.gather(listening, forwards, return_exceptions=True)
        await self._channels.close(problem)

    async def _listen(self) -> None:
        while (message := await self._channels.receive()) is not None:
            number, error = divmod(message.channel, 2)
            if error or number >= len(self._pairs):
                continue
            await self._pairs[number].deliver(b"" if message.closed else message.data)

    async def _forward(self, pair: _ChannelPair) -> None:
        try:
            port = await self._connect(pair.port)
        except DrakitError as error:
            await pair.fail(f"error forwarding port {pair.port} to {self._about}: {error}")
            return
        try:
            await join(pair, port)
        except DrakitError as error:
            await pair.fail(f"error forwarding port {pair.port} to {self._about}: {error}")
        finally:
            await port.close()


class _ChannelPair:
    """Data on one channel, errors on the next."""

    def __init__(self, channels: Channels, channel: int, port: int) -> None:
        self._channels = channels
        self._channel = channel
        self.port = port
        self._pieces: asyncio.Queue[bytes] = asyncio.Queue(_UNREAD_PIECES)

    async def announce(self) -> None:
        """The first message of each channel is the port, in two bytes, the lower one first."""
        number = self.port.to_bytes(2, "little")
        await self._channels.send(self._channel, number)
        await self._channels.send(self._channel + 1, number)

    async def deliver(self, data: bytes) -> None:
        await self._pieces.put(data)

    async def read(self) -> bytes:
        return await self._pieces.get()

    async def write(self, data: bytes) -> None:
        await self._channels.send(self._channel, data)

    async def finish(self) -> None:
        """There is no message for this: the connection's end says it."""

    async def lost(self) -> None:
        """A client has no other way to drop it than to end the WebSocket, which ends everything."""
        await asyncio.Event().wait()

    async def fail(self, message: str) -> None:
        log.info("%s", message)
        await self._channels.send(self._channel + 1, message.encode())


class SpdyForward:
    """SPDY, in a WebSocket or by itself: a client opens an error stream and a data stream for each connection."""

    def __init__(self, connection: ByteConnection, connect: Connect, *, about: str) -> None:
        self._connection = connection
        self._connect = connect
        self._about = about
        self._session = Session(connection.send, self._opened)
        self._errors: dict[str, SpdyStream] = {}
        """Streams that wait for the data stream of the same request."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        problem = ""
        try:
            while data := await self._connection.receive():
                await self._session.receive(data)
        except ProtocolError as error:
            log.info("port-forward to %s: %s", self._about, error)
            problem = str(error)
        finally:
            self._session.cut()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._connection.close(problem)

    def _opened(self, stream: SpdyStream) -> None:
        """The error stream comes first; its data stream has the same request id."""
        try:
            port = parse_port(stream.headers.get("port", ""))
        except DecodeError as error:
            raise StreamRefused from error
        kind = stream.headers.get("streamtype", "")
        if kind == "error":
            # kubectl opens the error stream first, so that a failure to connect has somewhere to go.
            self._errors[_request_id(stream)] = stream
        elif kind == "data" and (errors := self._errors.pop(_request_id(stream), None)) is not None:
            task = asyncio.create_task(self._forward(port, stream, errors))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            raise StreamRefused

    async def _forward(self, number: int, data: SpdyStream, errors: SpdyStream) -> None:
        try:
            port = await self._connect(number)
            try:
                await join(data, port)
            finally:
                await port.close()
        except DrakitError as error:
            message = f"error forwarding port {number} to {self._about}: {error}"
            log.info("%s", message)
            # The order counts: the client reads the error, sees its end, and only then loses the data stream.
            await errors.write(message.encode())
            await errors.finish()
            await data.reset()
        else:
            await errors.finish()
        finally:
            self._session.forget(data)
            self._session.forget(errors)


def _request_id(stream: SpdyStream) -> str:
    """Clients of long ago send none: their data stream is the next one after the error stream."""
    if given := stream.headers.get("requestid", ""):
        return given
    return f"stream {stream.number if stream.headers.get('streamtype') == 'error' else stream.number - 2}"
