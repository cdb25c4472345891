"""A live cluster, again and again as it changes: what `--watch` looks at.

In:  where the server is.
Out: the objects as they are now, then again after each change; changes that come together are told together.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from drakit.cli.flags.cluster import KINDS, cluster_of, live_access, served_kinds
from drakit.cli.flags.groups import ReachFlags
from drakit.client import Client, Resource
from drakit.client.transport.http import Http
from drakit.explain import ClusterObjects
from drakit.informers import Informers

PAUSE = 0.3
"""Seconds in which changes are gathered before anybody looks again."""


async def watched(reach: ReachFlags, kinds: Sequence[Resource[Any]] = KINDS) -> AsyncIterator[ClusterObjects]:
    """Raise DrakitError when there is no answer at first; later on, a server that is away is waited for."""
    async with Client(Http(live_access(reach))) as client:
        served = await served_kinds(client, kinds)
        informers, news = Informers(client), asyncio.Event()
        for kind in served:
            informers.of(kind).subscribe(lambda *_: news.set())
        async with informers.running():
            while True:
                # Before the caches are read: a change during the read leads to another look.
                news.clear()
                yield cluster_of(each for kind in served for each in informers.of(kind).cache)
                await news.wait()
                await client.clock.sleep(PAUSE)
