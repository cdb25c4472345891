"""Which changes can help a pod whose claims take more of a node than it has left.

In:  a pod that waits, and a pod on some node that went away or asks for less.
Out: whether that gave back anything that devices can take. Nodes, slices and claims wake such a pod like any other that
     waits for devices.
"""

from __future__ import annotations

from drakit.api import Pod
from drakit.scheduler.framework import Action, ClusterEvent, EventResource, Hint, Interest
from drakit.scheduler.framework.nodes import requests_of


def after_pod_left(waiting: Pod, old: Pod | None, new: Pod | None) -> Hint:
    if old is None or waiting.metadata.uid == old.metadata.uid:
        return Hint.SKIP
    left = requests_of(new) if new is not None and not new.is_terminal else {}
    freed = any(amount > left.get(name, 0) for name, amount in requests_of(old).items() if _can_be_taken(name))
    return Hint.QUEUE if freed else Hint.SKIP


def interests() -> tuple[Interest, ...]:
    freed = ClusterEvent(EventResource.POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN)
    return (Interest(freed, after_pod_left),)


def _can_be_taken(resource: str) -> bool:
    return "/" not in resource
