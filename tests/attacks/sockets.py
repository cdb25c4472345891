"""A server on a socket, and clients that write bytes of their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from drakit.apiserver import Settings
from drakit.apiserver.http.connections import ConnectionLimits
from drakit.apiserver.http.listener import Listener, bind
from tests.apiserver.calls import Api, serving


@asynccontextmanager
async def on_socket(
    settings: Settings | None = None, *, limits: ConnectionLimits | None = None
) -> AsyncIterator[tuple[Api, int]]:
    """A server and its port."""
    async with serving(settings) as api:
        bound = bind("127.0.0.1", 0)
        port = int(bound.getsockname()[1])
        async with Listener(api.server, bound, limits=limits).running():
            yield api, port


async def connect(port: int, *, source: str = "127.0.0.1") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0))


async def code_of(reader: asyncio.StreamReader) -> int:
    return int((await reader.readuntil(b"\r\n"))[9:12])


async def whole_answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """The code and the body of an answer whose length is told."""
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    length = next(int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length"))
    return int(head[9:12]), await reader.readexactly(length)


async def asked(port: int, request: bytes, *, source: str = "127.0.0.1") -> int:
    """The code of the answer to some bytes."""
    reader, writer = await connect(port, source=source)
    writer.write(request)
    try:
        return await code_of(reader)
    finally:
        writer.close()


def get(path: str, *headers: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "host: x", *headers, "", ""]).encode()
