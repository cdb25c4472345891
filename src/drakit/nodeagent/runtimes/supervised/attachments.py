"""Attach to a container through its shim's socket.

In:  the container's directory.
Out: what it writes from now on, its stdin, its exit code when it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path
from typing import Self

from drakit.nodeagent.runtimes.bytepipes import BytePipe
from drakit.nodeagent.runtimes.contract import ByteReader, RuntimeFailure
from drakit.nodeagent.runtimes.shim import frames

_CHUNK = 64 * 1024


async def connect(directory: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Through a descriptor of the directory: a socket's path may have 107 bytes only."""
    try:
        descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY)
        try:
            return await asyncio.open_unix_connection(f"/proc/self/fd/{descriptor}/shim.sock")
        finally:
            os.close(descriptor)
    except OSError as error:
        raise RuntimeFailure(f"container {directory.name} does not answer: {error}") from None


async def reopen_log(directory: Path) -> None:
    """Returns once the shim has done it."""
    reader, writer = await connect(directory)
    try:
        writer.write(frames.frame(frames.REOPEN))
        await writer.drain()
        await reader.readexactly(len(frames.frame(frames.REOPEN)))
    except (OSError, asyncio.IncompleteReadError) as error:
        raise RuntimeFailure(f"container {directory.name}: its log was not reopened: {error}") from None
    finally:
        await _close(writer)


class Attachment:
    """Keeps the ExecStreams contract; leaving it lets the container go on."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, stdin: bool) -> None:
        self._reader = reader
        self._writer = writer
        self._stdin = stdin
        self._stdout = BytePipe()
        self._stderr = BytePipe()
        self._exit: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._pump = asyncio.create_task(self._deal())

    @classmethod
    async def open(cls, directory: Path, *, stdin: bool) -> Self:
        reader, writer = await connect(directory)
        writer.write(frames.frame(frames.ATTACH))
        await writer.drain()
        return cls(reader, writer, stdin=stdin)

    @property
    def stdout(self) -> ByteReader:
        return self._stdout

    @property
    def stderr(self) -> ByteReader:
        return self._stderr

    async def write_stdin(self, data: bytes) -> None:
        if not self._stdin:
            return
        with contextlib.suppress(ConnectionError):
            for start in range(0, len(data), frames.MOST):
                self._writer.write(frames.frame(frames.STDIN, data[start : start + frames.MOST]))
                await self._writer.drain()

    async def close_stdin(self) -> None:
        if self._stdin:
            await self._send(frames.frame(frames.CLOSE_STDIN))

    async def resize(self, width: int, height: int) -> None:
        await self._send(frames.window_size(width, height))

    async def wait(self) -> int:
        return await asyncio.shield(self._exit)

    async def close(self) -> None:
        self._pump.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._pump
        await _close(self._writer)

    async def _send(self, data: bytes) -> None:
        with contextlib.suppress(ConnectionError):
            self._writer.write(data)
            await self._writer.drain()

    async def _deal(self) -> None:
        """Frames into streams, until the shim is gone."""
        received = frames.ShimFrameReader()
        try:
            while data := await self._reader.read(_CHUNK):
                for kind, content in received.feed(data):
                    if kind == frames.EXIT and not self._exit.done():
                        self._exit.set_result(int(content))
                    elif kind in (frames.STDOUT, frames.STDERR):
                        await (self._stdout if kind == frames.STDOUT else self._stderr).write(content)
        except ConnectionError:
            pass
        finally:
            if not self._exit.done():
                self._exit.set_result(0)
            await self._stdout.end()
            await self._stderr.end()


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
