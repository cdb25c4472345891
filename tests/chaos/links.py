"""Links between processes of this machine, which can be cut: a TCP proxy in front of each server.

In:  who listens on which port, and which process is whom.
Out: a port per server that leads there. While one end of a connection is cut off, nothing passes in either direction,
     and nothing tells so: as when a cable is pulled. When it is healed, what waited passes.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PIECE = 64 * 1024
_TABLE = Path("/proc/net/tcp")


class Links:
    """Runs in a thread with a loop of its own: its users may block. `processes` gives the pids by name, as of now."""

    def __init__(self, processes: Callable[[], Mapping[str, int]]) -> None:
        self._processes = processes
        self._cut: set[str] = set()
        self._healed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def forward(self, name: str, port: int) -> int:
        """A new port that leads to that one, which `name` listens on."""
        return int(self._call(self._forward(name, port)))

    def cut(self, name: str) -> None:
        self._call(self._set(name, cut=True))

    def heal(self, name: str) -> None:
        self._call(self._set(name, cut=False))

    def close(self) -> None:
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _call(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _forward(self, name: str, port: int) -> int:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            with suppress(OSError, asyncio.CancelledError):
                await self._join(name, port, reader, writer)
            writer.transport.abort()

        listening = await asyncio.start_server(serve, "127.0.0.1", 0)
        self._servers.append(listening)
        return int(listening.sockets[0].getsockname()[1])

    async def _join(self, name: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = _Ends(name, _inode_of(writer.get_extra_info("peername")[1], writer.get_extra_info("sockname")[1]))
        await self._pass(ends)
        there, back = await asyncio.open_connection("127.0.0.1", port)
        try:
            ways = [asyncio.ensure_future(self._pump(each, ends)) for each in ((reader, back), (there, writer))]
            # A connection that ends on one side ends on the other: nobody here uses half of one.
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        finally:
            back.transport.abort()

    async def _pump(self, way: tuple[asyncio.StreamReader, asyncio.StreamWriter], ends: _Ends) -> None:
        reader, writer = way
        while True:
            with suppress(ConnectionError):
                if data := await reader.read(_PIECE):
                    await self._pass(ends)
                    writer.write(data)
                    await writer.drain()
                    continue
            # The end is a message as well.
            await self._pass(ends)
            return

    async def _pass(self, ends: _Ends) -> None:
        """Wait until no end is cut off."""
        while self._cut and (ends.server in self._cut or self._client(ends) in self._cut):
            await self._healed.wait()

    async def _set(self, name: str, *, cut: bool) -> None:
        if cut:
            self._cut.add(name)
            return
        self._cut.discard(name)
        healed, self._healed = self._healed, asyncio.Event()
        healed.set()

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _client(self, ends: _Ends) -> str:
        """Who has opened a connection; empty for who is not among the processes (yet)."""
        if not ends.client:
            wanted = f"socket:[{ends.inode}]"
            ends.client = next((name for name, pid in self._processes().items() if wanted in _files_of(pid)), "")
        return ends.client


@dataclass
class _Ends:
    """The two ends of a connection: the server by name, the client by its socket until its name is asked for."""

    server: str
    inode: str
    client: str = ""


def _inode_of(port: int, towards: int) -> str:
    """The inode of the socket at the other end, as the kernel's table has it."""
    ends = f":{port:04X}", f":{towards:04X}"
    for line in _TABLE.read_text().splitlines()[1:]:
        fields = line.split()
        if fields[1].endswith(ends[0]) and fields[2].endswith(ends[1]):
            return fields[9]
    return ""


def _files_of(pid: int) -> set[str]:
    found = set()
    with suppress(OSError):
        for each in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):  # closed meanwhile
                found.add(str(each.readlink()))
    return found
