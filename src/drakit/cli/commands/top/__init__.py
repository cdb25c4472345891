"""`drakit top`: a live, full-screen view of nodes and devices, pods that wait, and events.

In:  a live cluster, drakit's or anybody's Kubernetes; or saved objects (`-f`). A terminal.
Out: the view until `q`. It needs the extra `top`.
"""

from __future__ import annotations

import asyncio
import sys

from drakit.api import Event, Partial
from drakit.base.errors import Unavailable, UsageError
from drakit.base.gates import FeatureGates
from drakit.cli.commands.top.feed import SavedFeed, TopFeed, live_feed
from drakit.cli.flags.cluster import Files, cluster_of, live_access
from drakit.cli.flags.groups import ReachFlags, with_groups
from drakit.cli.flags.saved import read_saved
from drakit.client import Client
from drakit.client.transport.http import Http


@with_groups
def top(
    reach: ReachFlags,
    files: Files = None,
) -> None:
    """Watch a cluster: devices as a heat map, pods that wait with the reasons, events. Keys filter; q quits."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("drakit top needs a terminal; drakit devices shows the same to a pipe")
    asyncio.run(_show(saved_feed(files)) if files else _live(reach))


def saved_feed(files: list[str]) -> SavedFeed:
    objects = [each.object for each in read_saved(files, FeatureGates.all_on()).objects]
    views = (each.view if isinstance(each, Partial) else each for each in objects)
    events = [each for each in views if isinstance(each, Event)]
    return SavedFeed(", ".join(files), cluster_of(objects), events)


async def _live(reach: ReachFlags) -> None:
    access = live_access(reach)
    async with Client(Http(access)) as client, live_feed(client, access.server) as feed:
        await _show(feed)


async def _show(feed: TopFeed) -> None:
    try:
        from drakit.cli.commands.top.application import TopApplication
    except ImportError:
        raise Unavailable("drakit top needs textual: pip install 'drakit[top]'") from None
    await TopApplication(feed).run_async()
