"""The follower: one watch of everything below the prefix, which keeps the copy in memory.

In:  etcd's events, in revision order.
Out: each to `take`, once; `restart` when history was compacted under us and the copy has to be read anew.

A stream that breaks, or whose member has lost its leader, is opened again on the next endpoint after the last revision
that was taken. Nothing is taken twice, as etcd numbers what it sends.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import grpc
from grpc import aio

from drakit.base.clock import Clock
from drakit.store.errors import StoreUnavailable
from drakit.store.etcd import etcd_pb2 as pb
from drakit.store.etcd.connection import Connection, EtcdMember
from drakit.store.etcd.requests import Keys, end_of_range, follow

log = logging.getLogger("drakit.store")

_PAUSES = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)
_LEADER_NEEDED = (("hasleader", "true"),)
"""With it etcd ends a stream whose member does not see a leader, where it would be silent otherwise."""

Take = Callable[[Sequence[pb.Event], int], Awaitable[None]]


class HistoryGap(Exception):
    """The copy cannot be continued event by event: it has to be read anew."""


class EtcdFollower:
    """`take` gets events and a revision up to which nothing else will come; `revision` says where to go on."""

    def __init__(
        self,
        connection: Connection,
        keys: Keys,
        clock: Clock,
        *,
        take: Take,
        restart: Callable[[], Awaitable[None]],
        revision: Callable[[], int],
    ) -> None:
        self._connection = connection
        self._keys = keys
        self._clock = clock
        self._take = take
        self._restart = restart
        self._revision = revision
        self._stream: aio.StreamStreamCall[pb.WatchRequest, pb.WatchResponse] | None = None
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        self._task = asyncio.create_task(self._follow())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def ask_progress(self) -> None:
        """Ask etcd how far this watch is. The answer comes as any other; a broken stream gives none."""
        if self._stream is not None:
            with suppress(aio.AioRpcError, asyncio.InvalidStateError):
                await self._stream.write(pb.WatchRequest(progress_request=pb.WatchProgressRequest()))

    async def _follow(self) -> None:
        failures = 0
        while True:
            endpoint, before = self._connection.endpoint, self._revision()
            try:
                await self._read(endpoint)
            except aio.AioRpcError as error:
                self._connection.leave(endpoint)
                # A stream that delivered something was healthy: the pause starts again from the shortest.
                failures = 1 if self._revision() > before else failures + 1
                if failures == 1:
                    log.warning("watch of etcd at %s ended: %s", endpoint.address, error.details() or error.code().name)
            except HistoryGap as gap:
                failures += await self._start_anew(str(gap))
            await self._clock.sleep(_PAUSES[min(failures, len(_PAUSES) - 1)])

    async def _start_anew(self, why: str) -> bool:
        """Read everything again; whether that failed."""
        log.warning("reading everything again from etcd: %s", why)
        try:
            await self._restart()
        except StoreUnavailable:
            return True
        return False

    async def _read(self, endpoint: EtcdMember) -> None:
        stream = endpoint.watches.Watch(metadata=_LEADER_NEEDED)
        try:
            start = self._keys.objects
            await stream.write(follow(start, end_of_range(start), self._revision() + 1))
            self._stream = stream
            async for answer in stream:
                await self._heed(answer)
        finally:
            self._stream = None
            stream.cancel()

    async def _heed(self, answer: pb.WatchResponse) -> None:
        # Checked before `canceled`: etcd sets both, and only this one asks for a full read.
        if answer.compact_revision:
            raise HistoryGap("what this server has not seen yet was compacted")
        if answer.canceled:
            raise aio.AioRpcError(
                grpc.StatusCode.UNAVAILABLE, aio.Metadata(), aio.Metadata(), answer.cancel_reason or "watch canceled"
            )
        if answer.events:
            # Every write of ours is one key in one transaction, so a revision is one event, and no fragment can split
            # it.
            await self._take(answer.events, answer.events[-1].kv.mod_revision)
        elif not answer.created:
            # A progress notification: the watch is at the header's revision, and everything before it was sent.
            await self._take((), answer.header.revision)
