"""Connections to ports of sandboxes that share the node's network."""

from __future__ import annotations

import asyncio
import contextlib

from drakit.nodeagent.runtimes.contract import RuntimeFailure

_CHUNK = 64 * 1024


class SocketStream:
    """Keeps the ByteStream contract over a TCP connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes:
        try:
            return await self._reader.read(_CHUNK)
        except OSError:
            return b""

    async def write(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise RuntimeFailure(f"the connection is lost: {error}") from None

    async def close_write(self) -> None:
        with contextlib.suppress(OSError):
            if self._writer.can_write_eof():
                self._writer.write_eof()

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


async def connect_local(port: int) -> SocketStream:
    """A port of this machine, by either address family."""
    failures = []
    for host in ("127.0.0.1", "::1"):
        try:
            return SocketStream(*await asyncio.open_connection(host, port))
        except OSError as error:
            failures.append(str(error))
    # The failure of 127.0.0.1 is the one to show: most programs listen there.
    raise RuntimeFailure(f"failed to connect to localhost:{port} inside the pod: {failures[0]}")
