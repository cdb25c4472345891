"""What comes from a node, on its way to a client: the body of a log, or a connection both ways.

In:  an answer of a node.
Out: content of a response; nothing is kept on the way but a piece at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from drakit.api.exchange import OpenBody, Tunnel
from drakit.apiserver.nodes.client import NodeResponse

_PIECE = 64 * 1024


class NodeBody(OpenBody):
    """`on_close` is called once, when it is no longer read. Without an answer the body is empty."""

    def __init__(self, answer: NodeResponse | None) -> None:
        self._answer = answer
        self.on_close: Callable[[], None] | None = None

    async def pieces(self) -> AsyncIterator[bytes]:
        while self._answer is not None and (piece := await self._answer.read()):
            yield piece

    async def close(self) -> None:
        if self._answer is not None:
            self._answer.close()
        if self.on_close is not None:
            told, self.on_close = self.on_close, None
            told()


class NodeTunnel(Tunnel):
    """`on_close` is called once, when the two ends are apart again."""

    def __init__(self, answer: NodeResponse) -> None:
        self._answer = answer
        self.on_close: Callable[[], None] | None = None

    async def join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Copy in both directions until one side ends. What the node sent before its end was written to the client."""
        writer.write(self._answer.early)
        tasks = (
            asyncio.create_task(_carry(reader, self._answer.writer)),
            asyncio.create_task(_carry(self._answer.reader, writer)),
        )
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def close(self) -> None:
        self._answer.close()
        if self.on_close is not None:
            told, self.on_close = self.on_close, None
            told()


async def _carry(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Copy one direction, no faster than the target reads. A broken connection counts as its end."""
    try:
        while data := await source.read(_PIECE):
            target.write(data)
            await target.drain()
    except OSError:
        return
