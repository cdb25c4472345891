"""Where `drakit top` has its objects from: a live cluster, followed by watches, or files.

In:  a client, or saved objects.
Out: the objects of this moment, a number that grows with every change, and whether the server answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

from drakit.api import Event
from drakit.base.errors import DrakitError
from drakit.cli.flags.cluster import KINDS, cluster_of, served_kinds
from drakit.client import EVENTS, Client, Resource
from drakit.explain import ClusterObjects
from drakit.informers import Informer, Informers

_PING_SECONDS = 5.0


class TopFeed(Protocol):
    title: str
    problem: str
    """Why what is shown may be old; empty while all is well."""
    revision: int

    def objects(self) -> ClusterObjects: ...

    def events(self) -> list[Event]: ...


class SavedFeed:
    """Objects that do not change."""

    def __init__(self, title: str, cluster: ClusterObjects, events: list[Event]) -> None:
        self.title = title
        self.problem = ""
        self.revision = 1
        self._cluster = cluster
        self._events = events

    def objects(self) -> ClusterObjects:
        return self._cluster

    def events(self) -> list[Event]:
        return self._events


class LiveFeed:
    """Use `live_feed`, which starts and ends it."""

    def __init__(self, title: str, informers: dict[Resource[Any], Informer[Any]]) -> None:
        self.title = title
        self.problem = ""
        self.revision = 0
        self._informers = informers
        for each in informers.values():
            each.subscribe(self._changed)

    def objects(self) -> ClusterObjects:
        found = (obj for kind, each in self._informers.items() if kind is not EVENTS for obj in each.cache.all())
        return cluster_of(found)

    def events(self) -> list[Event]:
        return [each.view for each in self._informers[EVENTS].cache.all()]

    def _changed(self, _old: object, _new: object) -> None:
        self.revision += 1


@asynccontextmanager
async def live_feed(client: Client, title: str) -> AsyncIterator[LiveFeed]:
    """Raise what the server says to a first look: it may not be there, or may not let us see everything."""
    informers = Informers(client)
    found = {kind: informers.of(kind) for kind in await served_kinds(client, (*KINDS, EVENTS))}
    async with informers.running():
        feed = LiveFeed(title, found)
        ping = asyncio.create_task(_ping(client, feed))
        try:
            yield feed
        finally:
            ping.cancel()
            await asyncio.gather(ping, return_exceptions=True)


async def _ping(client: Client, feed: LiveFeed) -> None:
    """Check whether the server answers. Watches reconnect silently, but the user should see that data may be old."""
    while True:
        try:
            await client.document("/version")
            feed.problem = ""
        except DrakitError as error:
            feed.problem = f"the server does not answer: {error}"
        await client.clock.sleep(_PING_SECONDS)
