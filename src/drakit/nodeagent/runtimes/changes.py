"""Which pods changed by themselves, from a runtime to its one reader."""

from __future__ import annotations

import asyncio
from typing import Self


class PodChanges:
    """A queue of pod uids, oldest first. A uid that is in the queue already is not added again.

    An iterator for one reader; it ends after `close`.
    """

    __slots__ = ("_closed", "_waiting", "_wake")

    def __init__(self) -> None:
        self._waiting: dict[str, None] = {}
        self._wake = asyncio.Event()
        self._closed = False

    def tell(self, pod_uid: str) -> None:
        self._waiting[pod_uid] = None
        self._wake.set()

    def close(self) -> None:
        self._closed = True
        self._wake.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        while not self._waiting:
            if self._closed:
                raise StopAsyncIteration
            # Clear, then wait, with no await in between: a uid that is added now sets the event again and is not
            # missed.
            self._wake.clear()
            await self._wake.wait()
        uid = next(iter(self._waiting))
        del self._waiting[uid]
        return uid
