"""The machine goes down: pods are ended in good order, and the node says so first.

In:  the pods that are there, how long they have.
Out: all of them ended, critical ones last; claims unprepared as for every end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from drakit.base.clock import Clock
from drakit.nodeagent.pods.admission import is_critical
from drakit.nodeagent.pods.services import NodeEviction
from drakit.nodeagent.pods.worker import PodWorker

REASON = "Terminated"
MESSAGE = "Pod was terminated in response to imminent node shutdown."
NOT_READY = "node is shutting down"
_LOOK_SECONDS = 0.1


async def end_pods(workers: Sequence[PodWorker], clock: Clock, *, grace: float, critical: float) -> None:
    """`grace` is for all together; of it, `critical` is for critical pods, after the others."""
    regular = [each for each in workers if not _is_critical(each)]
    await _end(regular, clock, max(grace - critical, 0.0))
    await _end([each for each in workers if _is_critical(each)], clock, critical)


def _is_critical(worker: PodWorker) -> bool:
    return worker.pod is not None and is_critical(worker.pod.view)


async def _end(workers: Sequence[PodWorker], clock: Clock, seconds: float) -> None:
    for worker in workers:
        worker.evict(NodeEviction(REASON, MESSAGE, grace=_grace(worker, seconds), disruption=MESSAGE))
    limit = clock.monotonic() + seconds
    while any(not worker.over for worker in workers) and clock.monotonic() < limit:
        await clock.sleep(_LOOK_SECONDS)
        await asyncio.sleep(0)


def _grace(worker: PodWorker, seconds: float) -> float:
    """A pod's own grace period, where it is shorter."""
    own = worker.pod.view.spec.termination_grace_period_seconds if worker.pod is not None else None
    return min(float(own), seconds) if own is not None else seconds
