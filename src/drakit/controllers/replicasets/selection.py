"""Which pods a replica set has, which it may take, and which go first. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from drakit.api import Pod, ReplicaSet
from drakit.api.objects.partial import Partial
from drakit.api.text.times import parse_time
from drakit.base.labels import from_struct

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_NEVER = "0001-01-01T00:00:00Z"
OnePod = Partial[Pod]


class SortedPods(msgspec.Struct, frozen=True):
    """The pods around a replica set: those it owns, those it must release, those without an owner that match."""

    owned: list[OnePod]
    released: list[OnePod]
    adopted: list[OnePod]


def sort_pods(replica_set: ReplicaSet, pods: Iterable[OnePod]) -> SortedPods:
    found = SortedPods([], [], [])
    selector = from_struct(replica_set.spec.selector) if replica_set.spec.selector is not None else None
    for pod in pods:
        metadata = pod.view.metadata
        controller = metadata.controller
        fits = selector is not None and selector.matches(metadata.labels)
        if controller is not None and controller.uid == replica_set.metadata.uid:
            (found.owned if fits else found.released).append(pod)
        elif controller is None and fits and metadata.deletion_timestamp is None and not pod.view.is_terminal:
            found.adopted.append(pod)
    return found


def is_active(pod: OnePod) -> bool:
    return not pod.view.is_terminal and pod.view.metadata.deletion_timestamp is None


def ready_since(pod: OnePod) -> str | None:
    """Since when a pod is ready; none when it is not."""
    for condition in pod.view.status.conditions:
        if condition.type == "Ready" and condition.status == "True":
            return condition.last_transition_time or _NEVER
    return None


def available_in(pod: OnePod, seconds: int, now: datetime) -> float | None:
    """In how many seconds a pod has been ready for long enough; none when it is not ready."""
    since = ready_since(pod)
    if since is None:
        return None
    return max((parse_time(since) + timedelta(seconds=seconds) - now).total_seconds(), 0.0) if seconds else 0.0


def first_to_go(pods: Iterable[OnePod]) -> list[OnePod]:
    """Without a node before those with one, pending before running, not ready before ready, then the youngest."""
    youngest = sorted(pods, key=lambda pod: pod.view.metadata.creation_timestamp or "", reverse=True)
    return sorted(youngest, key=_worth)


def _worth(pod: OnePod) -> tuple[bool, int, bool]:
    view = pod.view
    return bool(view.spec.node_name), _PHASES.get(view.status.phase, 0), ready_since(pod) is not None
