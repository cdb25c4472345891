"""Streams of a program that the agent itself started: exec in a process or crun container.

In:  an argument list that ends up in the container.
Out: its streams and exit code. Closing kills the program with all that it started in its session.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import select
import signal
import struct
import termios
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Self

from drakit.nodeagent.runtimes.contract import ByteReader, RuntimeFailure
from drakit.nodeagent.runtimes.supervised.pipes import ReadPipe

_CHUNK = 64 * 1024


class PipeReader:
    """A StreamReader as the contract's ByteReader; a terminal that lost its last process is at its end."""

    def __init__(self, reader: asyncio.StreamReader | None) -> None:
        self._reader = reader

    async def read(self) -> bytes:
        if self._reader is None:
            return b""
        try:
            return await self._reader.read(_CHUNK)
        except OSError:
            return b""


class ExecSession:
    """Keeps the ExecStreams contract."""

    def __init__(self, process: asyncio.subprocess.Process, pipes: AsyncExitStack, *readers: ReadPipe) -> None:
        self._process = process
        self._pipes = pipes
        self._stdout, self._stderr = (PipeReader(each.reader) for each in readers)

    @classmethod
    async def start(cls, argv: Sequence[str], *, stdin: bool) -> Self:
        given = asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL
        async with AsyncExitStack() as pipes:
            out, err = [await pipes.enter_async_context(ReadPipe()) for _ in range(2)]
            try:
                process = await asyncio.create_subprocess_exec(
                    *argv, stdin=given, stdout=out.theirs, stderr=err.theirs, start_new_session=True
                )
            except OSError as error:
                raise RuntimeFailure(f"exec: {error}") from None
            for each in (out, err):
                each.started()
            return cls(process, pipes.pop_all(), out, err)

    @property
    def stdout(self) -> ByteReader:
        return self._stdout

    @property
    def stderr(self) -> ByteReader:
        return self._stderr

    async def write_stdin(self, data: bytes) -> None:
        if self._process.stdin is not None:
            with contextlib.suppress(ConnectionError):
                self._process.stdin.write(data)
                await self._process.stdin.drain()

    async def close_stdin(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()

    async def resize(self, width: int, height: int) -> None:
        """There is no terminal."""

    async def wait(self) -> int:
        code = await self._process.wait()
        return code if code >= 0 else 128 - code

    async def close(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self.close_stdin()
        await self._process.wait()
        # A daemon that the program has left may hold them open for ever.
        await self._pipes.aclose()


class TerminalSession:
    """Keeps the ExecStreams contract for a program on a terminal of its own."""

    def __init__(self, process: asyncio.subprocess.Process, master: int, reader: asyncio.StreamReader) -> None:
        self._process = process
        self._master = master
        self._stdout = PipeReader(reader)
        self._stderr = PipeReader(None)
        self._transport: asyncio.BaseTransport | None = None

    @classmethod
    async def start(cls, argv: Sequence[str]) -> Self:
        master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        try:
            process = await asyncio.create_subprocess_exec(
                *argv, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
            )
        except OSError as error:
            os.close(master)
            raise RuntimeFailure(f"exec: {error}") from None
        finally:
            os.close(slave)
        reader = asyncio.StreamReader()
        # Two descriptors: the transport of the loop owns and closes one, stdin and resize use the other.
        session = cls(process, os.dup(master), reader)
        session._transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader),
            os.fdopen(master, "rb", buffering=0),
        )
        return session

    @property
    def stdout(self) -> ByteReader:
        return self._stdout

    @property
    def stderr(self) -> ByteReader:
        return self._stderr

    async def write_stdin(self, data: bytes) -> None:
        """A terminal that is not read takes about 4 kB; the rest waits beside the loop."""
        with contextlib.suppress(OSError):
            await asyncio.to_thread(self._write_all, data)

    async def close_stdin(self) -> None:
        await self.write_stdin(b"\x04")

    async def resize(self, width: int, height: int) -> None:
        with contextlib.suppress(OSError):
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    async def wait(self) -> int:
        code = await self._process.wait()
        return code if code >= 0 else 128 - code

    async def close(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()
        if self._transport is not None:
            self._transport.close()
            self._transport = None
            os.close(self._master)

    def _write_all(self, data: bytes) -> None:
        while data and self._transport is not None:
            # With a timeout, so that the thread ends soon after `close` although nobody reads the terminal.
            _, ready, _ = select.select([], [self._master], [], 0.5)
            if ready:
                with contextlib.suppress(BlockingIOError):
                    data = data[os.write(self._master, data) :]
