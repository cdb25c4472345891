"""What the scheduler writes into a pod's status: why it waits, and where it will go.

In:  a pod as informers know it, and what there is to say.
Out: a patch of its status, or none when that is said already.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from drakit.api.objects.pods import Pod, PodCondition
from drakit.api.text.times import format_time

POD_SCHEDULED = "PodScheduled"
UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"

StatusPatch = Mapping[str, Any]


def not_scheduled(pod: Pod, reason: str, message: str, now: datetime, node: str = "") -> StatusPatch | None:
    """The patch for a pod that could not be placed: its condition, and its nominated node (empty: none)."""
    status: dict[str, Any] = {}
    known = _condition(pod, POD_SCHEDULED)
    if known is None or _said(known) != ("False", reason, message, pod.metadata.generation):
        since = known.last_transition_time if known is not None and known.status == "False" else None
        status["conditions"] = [
            {
                "type": POD_SCHEDULED,
                "status": "False",
                "reason": reason,
                "message": message,
                "observedGeneration": pod.metadata.generation,
                "lastProbeTime": None,
                "lastTransitionTime": since or format_time(now),
            }
        ]
    # Written as null when there is none any more: left out, a strategic patch would keep the old one.
    if pod.status.nominated_node_name != node:
        status["nominatedNodeName"] = node or None
    return {"status": status} if status else None


def nominated(pod: Pod, node: str) -> StatusPatch | None:
    """The patch that sets the nominated node."""
    if pod.status.nominated_node_name == node:
        return None
    return {"status": {"nominatedNodeName": node}}


def not_nominated() -> StatusPatch:
    """The patch that removes the nominated node."""
    return {"status": {"nominatedNodeName": None}}


def _condition(pod: Pod, name: str) -> PodCondition | None:
    return next((each for each in pod.status.conditions if each.type == name), None)


def _said(condition: PodCondition) -> tuple[str, str, str, int]:
    return condition.status, condition.reason, condition.message, condition.observed_generation
