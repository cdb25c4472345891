"""Accept connections, up to a number per address and in total.

In:  a listening socket, and a protocol for each connection.
Out: connections with the protocol on them. Beyond the limits the connection that has been idle for longest makes room;
     if none is idle, the new one is closed.

Connections count from the moment that they are accepted: one whose TLS handshake never ends counts as well.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import ssl
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol

from drakit.apiserver.http.handshakes import Handshakes

log = logging.getLogger("drakit.apiserver.http")

HANDSHAKE_SECONDS = 10.0
_RESERVED_FILES = 512
"""Files that the process needs beside its connections: database, logs, nodes, webhooks."""
_TELL_SECONDS = 60.0
_PAUSE_SECONDS = 0.1
_LAST_HANDSHAKES_SECONDS = 0.5
_ACCEPTED_TOGETHER = 8
"""Connections that are accepted before others have their turn on the loop."""
_ON_A_FILE = "a Unix socket"


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """An idle connection takes about 40 KiB."""

    total: int = 10_000
    per_address: int = 5_000

    def within(self, files: int) -> ConnectionLimits:
        """The limits for a process that may have so many files open. No address may take more than half."""
        total = max(min(self.total, files - _RESERVED_FILES), 1)
        return ConnectionLimits(total, max(min(self.per_address, (total + 1) // 2), 1))


def raise_file_limit() -> int:
    """Let the process open as many files as it may. Return how many that are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard if hard != resource.RLIM_INFINITY else 1 << 20


class Droppable(Protocol):
    """Whoever has a connection and can let go of it."""

    def drop(self) -> None:
        """Close the connection at once."""
        ...


class Connections:
    """The open connections. Invariant: those of `_idle` are in `_open`, the one that became idle first comes first."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._open: dict[str, int] = {}
        self._total = 0
        self._idle: dict[str, dict[Droppable, None]] = {}
        self._told = float("-inf")
        self._refused = 0

    def __len__(self) -> int:
        return self._total

    def admit(self, address: str, now: float) -> bool:
        """Make room for one more connection, and count it; False when there is no room."""
        full = self._open.get(address, 0) >= self._limits.per_address
        if (full or self._total >= self._limits.total) and not self._make_room(address, own=full):
            self._tell(address, now)
            return False
        self._open[address] = self._open.get(address, 0) + 1
        self._total += 1
        return True

    def leave(self, address: str) -> None:
        self._total -= 1
        left = self._open[address] - 1
        if left:
            self._open[address] = left
        else:
            del self._open[address]

    def idle(self, address: str, connection: Droppable) -> None:
        """The connection waits for a request. Idempotent."""
        self._idle.setdefault(address, {})[connection] = None

    def busy(self, address: str, connection: Droppable) -> None:
        """The connection has a request, or is gone. Idempotent."""
        idle = self._idle.get(address)
        if idle is not None:
            idle.pop(connection, None)
            if not idle:
                del self._idle[address]

    def _make_room(self, address: str, *, own: bool) -> bool:
        """Drop an idle connection: of the address if that is full, else of the address that has most."""
        place = address if own else max(self._idle, key=lambda each: self._open.get(each, 0), default=None)
        idle = self._idle.get(place) if place is not None else None
        if place is None or not idle:
            return False
        connection = next(iter(idle))
        self.busy(place, connection)
        connection.drop()
        return True

    def _tell(self, address: str, now: float) -> None:
        """Log once in a while: a line per refusal would be another way to fill the disk."""
        self._refused += 1
        if now - self._told >= _TELL_SECONDS:
            log.warning(
                "too many connections: %d open, %d of them from %s; %d refused", self._total,
                self._open.get(address, 0), address, self._refused,
            )  # fmt: skip
            self._told, self._refused = now, 0


class _Handshake:
    """A connection that was accepted and has no protocol yet."""

    task: asyncio.Task[None] | None = None

    def drop(self) -> None:
        if self.task is not None:
            self.task.cancel()


class Acceptor:
    """Accepts connections of one socket until it is stopped.

    `protocol` makes the protocol for a connection of an address. Once that is `made`, it tells `Connections` when it is
    idle, busy or gone.
    """

    def __init__(
        self,
        listening: socket.socket,
        protocol: Callable[[str], Any],
        connections: Connections,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self._listening = listening
        self._protocol = protocol
        self._connections = connections
        self._context = context
        self._handshakes = Handshakes()
        self._accepting: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        self._accepting = asyncio.create_task(self._accept())

    async def stop(self) -> None:
        """Idempotent. Connections that have their protocol stay, and those that are about to get it."""
        if self._accepting is not None:
            self._accepting.cancel()
            await asyncio.gather(self._accepting, return_exceptions=True)
        # A client may be through with the handshake, and have sent its request, before we are.
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_LAST_HANDSHAKES_SECONDS)
        tasks, self._tasks = tuple(self._tasks), set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        for number in count(1):
            if number % _ACCEPTED_TOGETHER == 0:
                await asyncio.sleep(0)
            try:
                accepted, peer = await loop.sock_accept(self._listening)
            except OSError as error:
                # No file left, or the client has gone already: others must still be accepted, a little later.
                log.warning("cannot accept a connection: %s", error)
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            address = str(peer[0]) if isinstance(peer, tuple) and peer else _ON_A_FILE
            if not self._connections.admit(address, loop.time()):
                accepted.close()
                continue
            handshake = _Handshake()
            self._connections.idle(address, handshake)
            handshake.task = self._spawn(self._connect(accepted, address, handshake))

    async def _connect(self, accepted: socket.socket, address: str, handshake: _Handshake) -> None:
        """Give the connection its protocol."""
        protocol = self._protocol(address)
        connect = asyncio.get_running_loop().connect_accepted_socket
        try:
            if self._context is None:
                await connect(lambda: protocol, accepted)
            else:
                async with asyncio.timeout(HANDSHAKE_SECONDS), self._handshakes.one(accepted, address):
                    await connect(
                        lambda: protocol, accepted, ssl=self._context, ssl_handshake_timeout=HANDSHAKE_SECONDS
                    )
        except (OSError, asyncio.CancelledError):  # an SSLError is an OSError
            accepted.close()
        finally:
            self._connections.busy(address, handshake)
            if not protocol.made:
                self._connections.leave(address)
