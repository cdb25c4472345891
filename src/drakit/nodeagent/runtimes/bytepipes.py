"""Bytes from one task to another, with a bound on what waits in between."""

from __future__ import annotations

import asyncio

_MOST_WAITING = 1 << 20


class BytePipe:
    """One writer, one reader. `write` waits while the reader is far behind; after `end`, `read` gives the rest."""

    def __init__(self) -> None:
        self._waiting = bytearray()
        self._ended = False
        self._changed = asyncio.Condition()

    async def write(self, data: bytes) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._ended or len(self._waiting) < _MOST_WAITING)
            # Whoever waited for room may find that the reader has left in the meantime; its data has no reader then.
            if not self._ended:
                self._waiting += data
                self._changed.notify_all()

    async def end(self) -> None:
        async with self._changed:
            self._ended = True
            self._changed.notify_all()

    async def read(self) -> bytes:
        async with self._changed:
            await self._changed.wait_for(lambda: self._ended or self._waiting)
            data = bytes(self._waiting)
            self._waiting.clear()
            self._changed.notify_all()
            return data
