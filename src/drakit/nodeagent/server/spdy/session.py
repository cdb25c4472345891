"""The streams of one SPDY connection, on the side that is called.

In:  bytes of the peer (`receive`), and a function that is called for each stream that it opens.
Out: bytes to the peer (`send`), in order.

A stream keeps at most a few pieces that nobody has read; while one is full, nothing is read from the connection.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping

from drakit.nodeagent.server.spdy import frames
from drakit.nodeagent.server.spdy.frames import ControlFrame, DataFrame, Frame, FrameReader, ProtocolError
from drakit.nodeagent.server.spdy.headers import HeaderError, HeaderPacker, HeaderUnpacker

MOST_STREAMS = 1000
_UNREAD_PIECES = 16
_HEADERS_OFFSET = 10
"""Of a SYN_STREAM: two ids, a priority and a slot come before the headers."""

Send = Callable[[bytes], Awaitable[None]]


class StreamRefused(Exception):
    """The function that was called for a new stream does not take it."""


class SpdyStream:
    """Both directions of one stream. Each can end on its own; a reset ends both."""

    def __init__(self, number: int, headers: Mapping[str, str], send: Send) -> None:
        self.number = number
        self.headers = headers
        self._send = send
        self._pieces: deque[bytes] = deque()
        self._readable = asyncio.Event()
        self._room = asyncio.Event()
        self._ended = False
        """The peer has nothing more to say."""
        self._finished = False
        """We have nothing more to say."""
        self._lost = asyncio.Event()

    @property
    def _gone(self) -> bool:
        return self._lost.is_set()

    async def lost(self) -> None:
        """Returns once the stream was reset, or its connection ended."""
        await self._lost.wait()

    async def read(self) -> bytes:
        """The next piece; empty at the end, and from then on."""
        while not self._pieces:
            if self._ended or self._gone:
                return b""
            self._readable.clear()
            await self._readable.wait()
        # Set before the piece is taken, with no await in between: the writer finds the room when it runs.
        self._room.set()
        return self._pieces.popleft()

    async def write(self, data: bytes) -> None:
        """Nothing is sent after `finish` or a reset."""
        if data and not self._finished and not self._gone:
            await self._send(frames.data_frame(self.number, data))

    async def finish(self) -> None:
        """Tell the peer that nothing more comes."""
        if not self._finished and not self._gone:
            self._finished = True
            await self._send(frames.data_frame(self.number, b"", fin=True))

    async def reset(self, code: int = frames.RST_CANCEL) -> None:
        if not self._gone:
            self.cut()
            await self._send(frames.rst_stream(self.number, code))

    async def deliver(self, data: bytes, *, fin: bool) -> None:
        """Take what the peer sent; wait while too much is unread, unless nobody will ever read it."""
        while len(self._pieces) >= _UNREAD_PIECES and not self._gone:
            self._room.clear()
            await self._room.wait()
        if self._ended or self._gone:
            return
        if data:
            self._pieces.append(data)
        self._ended = fin
        self._readable.set()

    def cut(self) -> None:
        """The stream or the connection is gone: what is unread is lost, writing does nothing."""
        self._lost.set()
        self._pieces.clear()
        self._readable.set()
        self._room.set()


class Session:
    """One connection. `opened` gets each new stream before its reply is sent; it must not wait for data."""

    def __init__(self, send: Send, opened: Callable[[SpdyStream], None]) -> None:
        self._out = send
        self._opened = opened
        self._reader = FrameReader()
        self._unpacker = HeaderUnpacker()
        self._packer = HeaderPacker()
        # Invariant: header blocks are sent in the order in which they were compressed, so both happen under this lock.
        self._sending = asyncio.Lock()
        self._streams: dict[int, SpdyStream] = {}
        self._last = 0

    async def receive(self, data: bytes) -> None:
        """Take bytes of the peer. Raise ProtocolError: the connection is to be closed."""
        for frame in self._reader.feed(data):
            await self._take(frame)

    async def close(self) -> None:
        """Say goodbye; every stream ends."""
        self.cut()
        await self._send(frames.goaway(self._last))

    def cut(self) -> None:
        """The connection is gone."""
        for stream in self._streams.values():
            stream.cut()
        self._streams.clear()

    def forget(self, stream: SpdyStream) -> None:
        """Its owner is through with it; what still comes for it is dropped."""
        stream.cut()
        self._streams.pop(stream.number, None)

    async def _take(self, frame: Frame) -> None:
        if isinstance(frame, DataFrame):
            await self._data(frame)
        elif frame.kind == frames.SYN_STREAM:
            await self._open(frame)
        elif frame.kind == frames.RST_STREAM:
            if (stream := self._streams.pop(frame.stream, None)) is not None:
                stream.cut()
        elif frame.kind == frames.PING:
            if frame.word() % 2:  # even ones are answers to pings of ours, and we send none
                await self._send(frames.ping(frame.word()))
        elif frame.kind == frames.GOAWAY:
            self.cut()
        # Settings, windows and later headers change nothing here.

    async def _data(self, frame: DataFrame) -> None:
        stream = self._streams.get(frame.stream)
        if stream is None:
            return  # forgotten, or reset: the peer may not know that yet
        await stream.deliver(frame.data, fin=frame.fin)

    async def _open(self, frame: ControlFrame) -> None:
        # The headers are read even for a stream that is refused: the compression would lose its place otherwise.
        try:
            headers = self._unpacker.unpack(frame.body[_HEADERS_OFFSET:])
        except HeaderError as error:
            raise ProtocolError(str(error)) from None
        number = frame.stream
        if not number % 2 or number <= self._last:
            raise ProtocolError(f"stream {number} after {self._last}: ids of the caller are odd and grow")
        self._last = number
        stream = SpdyStream(number, headers, self._send)
        # The limit is checked first: `_accepted` would start work for a stream that is refused.
        if len(self._streams) >= MOST_STREAMS or not self._accepted(stream):
            await self._send(frames.rst_stream(number, frames.RST_REFUSED))
            return
        self._streams[number] = stream
        await self._reply(number)
        if frame.flags & frames.FLAG_FIN:
            await stream.deliver(b"", fin=True)

    def _accepted(self, stream: SpdyStream) -> bool:
        try:
            self._opened(stream)
        except StreamRefused:
            return False
        return True

    async def _reply(self, number: int) -> None:
        async with self._sending:
            await self._out(frames.syn_reply(number, self._packer.pack({})))

    async def _send(self, data: bytes) -> None:
        async with self._sending:
            await self._out(data)
