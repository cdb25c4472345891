"""Evict pods for the sake of another: say so in their status, delete them, tell of it.

In:  victims, and the pod that they make room for.
Out: each with the condition DisruptionTarget and on its way out, with its grace period; or the first error.

Safe to repeat: a victim that is gone, or another pod of its name, is left alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from drakit.api.objects.pods import Pod
from drakit.api.text.times import format_time
from drakit.client import PODS, STRATEGIC, Conflict, Key, NotFound
from drakit.client.events import NORMAL
from drakit.scheduler.framework import Handle

DISRUPTION_TARGET = "DisruptionTarget"
BY_SCHEDULER = "PreemptionByScheduler"


async def evict_all(handle: Handle, victims: Iterable[Pod], preemptor: Pod, node: str) -> None:
    """Raise DrakitError when one cannot be evicted; the others are."""
    outcomes = await asyncio.gather(
        *(_evict(handle, each, preemptor, node) for each in victims), return_exceptions=True
    )
    for outcome in outcomes:
        if outcome is not None:
            raise outcome


async def _evict(handle: Handle, victim: Pod, preemptor: Pod, node: str) -> None:
    metadata = victim.metadata
    found = handle.informers.of(PODS).cache.get(Key(metadata.namespace, metadata.name))
    if found is None or found.view.metadata.uid != metadata.uid or found.view.metadata.deletion_timestamp:
        return
    try:
        if not is_preempted(found.view):
            patch = {"status": {"conditions": [_condition(handle, found.view, preemptor)]}}
            await handle.client.patch(found, patch, kind=STRATEGIC, subresource="status")
        await handle.client.delete(PODS, metadata.name, namespace=metadata.namespace, uid=metadata.uid)
    except (NotFound, Conflict):
        return  # it is gone, or another pod has its name
    message = f"Preempted by pod {preemptor.metadata.uid} on node {node}"
    handle.record(victim, NORMAL, "Preempted", message)


def is_preempted(pod: Pod) -> bool:
    """Whether a pod is marked as a victim of preemption."""
    target = next((each for each in pod.status.conditions if each.type == DISRUPTION_TARGET), None)
    return target is not None and (target.status, target.reason) == ("True", BY_SCHEDULER)


def _condition(handle: Handle, victim: Pod, preemptor: Pod) -> dict[str, Any]:
    return {
        "type": DISRUPTION_TARGET,
        "status": "True",
        "reason": BY_SCHEDULER,
        "message": f"{preemptor.spec.scheduler_name}: preempting to accommodate a higher priority pod",
        "observedGeneration": victim.metadata.generation,
        "lastProbeTime": None,
        "lastTransitionTime": format_time(handle.clock.now()),
    }
