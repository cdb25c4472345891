"""Pace TLS handshakes: each costs more than a request, and comes before anybody knows who asks.

In:  accepted connections, each of an address.
Out: permission to begin the handshake, when the client has sent something and it is the turn of its address.

A client that sends nothing waits here for nothing but its own end. Invariant: of one address, at most `PER_ADDRESS`
handshakes have begun and not ended, so that what they send at the same moment holds the loop for tenths of a second at
worst.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from drakit.apiserver.http.turns import Turns

PER_ADDRESS = 32
_PER_TURN = 2
"""A handshake takes about a millisecond."""


class Handshakes:
    """State is kept of addresses that have handshakes, and of no others."""

    def __init__(self, per_address: int = PER_ADDRESS) -> None:
        self._per_address = per_address
        self._turns = Turns(_PER_TURN)
        self._begun: dict[str, int] = {}
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def one(self, accepted: socket.socket, address: str) -> AsyncIterator[None]:
        """The time of one handshake."""
        await _readable(accepted)
        await self._enter(address)
        try:
            await self._turns.wait(address)
            yield
        finally:
            self._leave(address)

    async def _enter(self, address: str) -> None:
        if self._begun.get(address, 0) < self._per_address:
            self._begun[address] = self._begun.get(address, 0) + 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(address, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave(address)  # the place came, and nobody takes it
            raise

    def _leave(self, address: str) -> None:
        """Give the place to the next one that still wants it, or back."""
        waiting = self._waiting.get(address, deque())
        while waiting:
            turn = waiting.popleft()
            if not waiting:
                del self._waiting[address]
            if not turn.done():
                turn.set_result(None)
                return
        self._begun[address] -= 1
        if not self._begun[address]:
            del self._begun[address]


async def _readable(accepted: socket.socket) -> None:
    """Return when the client has sent something, or is gone."""
    loop = asyncio.get_running_loop()
    found: asyncio.Future[None] = loop.create_future()
    loop.add_reader(accepted.fileno(), lambda: None if found.done() else found.set_result(None))
    try:
        await found
    finally:
        loop.remove_reader(accepted.fileno())
