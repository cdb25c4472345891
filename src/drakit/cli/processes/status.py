"""How the cluster of this process is, in one line, as long as it runs.

In:  the caches that its components share.
Out: nodes, pods and devices, once a second, on a terminal.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from drakit.cli.output.statusline import StatusLine
from drakit.cli.processes.components import Surroundings
from drakit.client import CLAIMS, NODES, PODS
from drakit.informers import Informers

_SECONDS = 1.0


@asynccontextmanager
async def live_status(around: Surroundings, line: StatusLine) -> AsyncIterator[None]:
    """The line is there while the context is open; it is taken away by what comes after."""
    if not line.is_useful:
        yield
        return
    task = asyncio.create_task(_follow(around, line), name="status line")
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        line.show("stopping …")


async def _follow(around: Surroundings, line: StatusLine) -> None:
    while True:
        line.show(f"{summary(around.informers)} · Ctrl-C stops")
        await around.clock.sleep(_SECONDS)


def summary(informers: Informers) -> str:
    """`2 of 2 nodes ready · pods: 3 running, 1 pending · 4 devices in use`."""
    nodes = [each.view for each in informers.of(NODES).cache.all()]
    ready = sum(any((c.type, c.status) == ("Ready", "True") for c in node.status.conditions) for node in nodes)
    phases = Counter(each.view.status.phase.lower() for each in informers.of(PODS).cache.all())
    pods = ", ".join(f"{count} {phase}" for phase, count in sorted(phases.items())) or "none"
    used = {
        (each.driver, each.pool, each.device)
        for claim in informers.of(CLAIMS).cache.all()
        if claim.status.allocation is not None
        for each in claim.status.allocation.devices.results
        if not each.admin_access
    }
    return f"{ready} of {len(nodes)} nodes ready · pods: {pods} · {len(used)} devices in use"
