"""The streams of a command over SPDY, as `kubectl` before 1.29 and Go programs with a SPDY executor open them.

In:  one stream each for the status and for what of stdin, stdout, stderr and terminal sizes is wanted.
Out: the same numbered channels that a WebSocket has, with ends of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self

from drakit.api.podstreams import PodStreamOptions
from drakit.nodeagent.server.channels import ChannelError, ChannelMessage
from drakit.nodeagent.server.connections import ByteConnection
from drakit.nodeagent.server.remotecommand import RESIZE, STATUS, STDERR, STDIN, STDOUT
from drakit.nodeagent.server.spdy import ProtocolError, Session, SpdyStream, StreamRefused

STREAMS_SECONDS = 30.0
_KINDS = {"error": STATUS, "stdin": STDIN, "stdout": STDOUT, "stderr": STDERR, "resize": RESIZE}
_UNREAD_MESSAGES = 4


class SpdyChannels:
    """Used as a context; entering it waits until the client has opened its streams. Raise ChannelError if it does not.

    A resize stream is optional: the oldest clients have none.
    """

    greets = False

    def __init__(self, connection: ByteConnection, options: PodStreamOptions) -> None:
        self._connection = connection
        self._session = Session(connection.send, self._opened)
        flags = ((STDIN, options.stdin), (STDOUT, options.stdout), (STDERR, options.stderr), (STATUS, True))
        self._missing = {channel for channel, wanted in flags if wanted}
        self._streams: dict[int, SpdyStream] = {}
        self._complete = asyncio.Event()
        self._messages: asyncio.Queue[ChannelMessage | ChannelError | None] = asyncio.Queue(_UNREAD_MESSAGES)
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        reading = self._spawn(self._read_connection())
        complete = asyncio.create_task(self._complete.wait())
        try:
            await asyncio.wait((reading, complete), timeout=STREAMS_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:
            complete.cancel()
            await asyncio.gather(complete, return_exceptions=True)
        if self._missing:
            await self._end()
            raise ChannelError("timed out waiting for client to create streams")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    async def _end(self) -> None:
        self._session.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._connection.close()

    async def send(self, channel: int, data: bytes) -> None:
        if (stream := self._streams.get(channel)) is not None:
            await stream.write(data)

    async def receive(self) -> ChannelMessage | None:
        message = await self._messages.get()
        if isinstance(message, ChannelError):
            raise message
        return message

    async def close(self, error: str = "") -> None:  # noqa: ARG002 - there is no place for words
        """Each stream ends by itself, so that the client knows that it has all of it."""
        for stream in self._streams.values():
            await stream.finish()
        await self._session.close()

    def _opened(self, stream: SpdyStream) -> None:
        channel = _KINDS.get(stream.headers.get("streamtype", ""))
        if channel is None or channel in self._streams:
            raise StreamRefused
        self._streams[channel] = stream
        self._missing.discard(channel)
        if channel == STDIN:
            self._spawn(self._read_stdin(stream))
        elif channel == RESIZE:
            self._spawn(self._read_sizes(stream))
        if not self._missing:
            self._complete.set()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        return task

    async def _read_connection(self) -> None:
        problem: ChannelError | None = None
        try:
            while data := await self._connection.receive():
                await self._session.receive(data)
        except ProtocolError as error:
            problem = ChannelError(str(error))
        self._session.cut()
        # None means that the client has gone, and wakes whoever waits for a message.
        await self._messages.put(problem)

    async def _read_stdin(self, stream: SpdyStream) -> None:
        while data := await stream.read():
            await self._messages.put(ChannelMessage(STDIN, data))
        await self._messages.put(ChannelMessage(STDIN, closed=True))

    async def _read_sizes(self, stream: SpdyStream) -> None:
        """One JSON document per line."""
        rest = b""
        while data := await stream.read():
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                await self._messages.put(ChannelMessage(RESIZE, line))
            # No size is that long; a client that never ends its line must not fill the memory.
            rest = rest[:1000]
