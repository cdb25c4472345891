"""A client that speaks SPDY over a connection that was upgraded."""

from __future__ import annotations

import asyncio

from drakit.nodeagent.server.spdy import frames
from drakit.nodeagent.server.spdy.headers import HeaderPacker


class SpdyClient:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: str) -> None:
        self.reader, self.writer, self.head = reader, writer, head
        self._packer = HeaderPacker()
        self._next = 1

    async def open(self, **headers: str) -> int:
        number, self._next = self._next, self._next + 2
        await self.send(frames.syn_stream(number, self._packer.pack(headers)))
        return number

    async def streams(self, *kinds: str) -> dict[str, int]:
        return {kind: await self.open(streamType=kind) for kind in kinds}

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def everything(self) -> tuple[dict[int, bytes], list[int]]:
        """What came on each stream until the server hung up, and which of them it ended."""
        got, ended, reader = dict[int, bytearray](), list[int](), frames.FrameReader()
        while data := await self.reader.read(65536):
            for frame in reader.feed(data):
                if isinstance(frame, frames.DataFrame):
                    got.setdefault(frame.stream, bytearray()).extend(frame.data)
                    ended += [frame.stream] * frame.fin
        return {stream: bytes(data) for stream, data in got.items()}, ended
