"""The reading end of a pipe that somebody else writes into.

It is closed by its owner, whoever still holds the other end. The pipes of asyncio's own subprocesses close when the
last writer is gone: one that a program has left to a daemon never does.
"""

from __future__ import annotations

import asyncio
import os
from types import TracebackType
from typing import Self


class ReadPipe:
    """`async with`; `theirs` is the end to write into, for a program that is started next."""

    async def __aenter__(self) -> Self:
        self.reader = asyncio.StreamReader()
        ours, self._theirs = os.pipe()
        self._transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(self.reader), os.fdopen(ours, "rb", buffering=0)
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def theirs(self) -> int:
        return self._theirs

    def started(self) -> None:
        """The program has its end now: when it is gone, the reader comes to an end."""
        if self._theirs >= 0:
            os.close(self._theirs)
            self._theirs = -1

    def close(self) -> None:
        """Idempotent."""
        self.started()
        self._transport.close()
