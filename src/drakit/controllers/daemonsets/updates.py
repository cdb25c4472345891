"""Which pods a daemon set makes and deletes next. Pure.

In:  its pods by node, where it wants one, which revision is current, which pods are available.
Out: nodes that get a pod, and pods that go; the controller looks again when that is done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from drakit.controllers.daemonsets.nodes import HASH, DaemonPlacement, OnePod, OneSet
from drakit.controllers.intorpercent import scaled


class Steps(msgspec.Struct):
    make: list[str] = msgspec.field(default_factory=list)
    delete: list[OnePod] = msgspec.field(default_factory=list)
    failed: list[OnePod] = msgspec.field(default_factory=list)
    """Those of `delete` that had failed: their successor waits a little."""


Pods = Mapping[str, Sequence[OnePod]]


def fill(placements: Mapping[str, DaemonPlacement], pods: Pods, *, surging: bool) -> Steps:
    """One pod where one is wanted, none where not. Of several, the oldest stays (two, while one takes over)."""
    steps = Steps()
    for node, here in pods.items():
        place = placements.get(node)
        if place is None or not place.keep:
            steps.delete += [pod for pod in here if pod.view.metadata.deletion_timestamp is None]
            continue
        failed = [pod for pod in here if pod.view.status.phase in ("Failed", "Succeeded") and is_going(pod) is False]
        steps.failed += failed
        running = sorted((pod for pod in here if not pod.view.is_terminal), key=_age)
        allowed = 2 if surging else 1
        steps.delete += failed + [pod for pod in running[allowed:] if not is_going(pod)]
    steps.make = [node for node, place in placements.items() if place.run and not pods.get(node)]
    return steps


def roll(daemon_set: OneSet, pods: Pods, hashed: str, desired: int, available: Callable[[OnePod], bool]) -> Steps:
    """One step of a rolling update: old pods go as far as `maxUnavailable` and `maxSurge` allow."""
    rolling = daemon_set.view.spec.update_strategy.rolling_update
    surge = scaled(rolling.max_surge if rolling else 0, desired, round_up=True)
    missing = scaled(rolling.max_unavailable if rolling else 1, desired, round_up=True)
    if surge:
        return _with_surge(pods, hashed, surge, available)
    return _in_place(pods, hashed, max(missing, 1), available)


def _in_place(pods: Pods, hashed: str, allowed: int, available: Callable[[OnePod], bool]) -> Steps:
    """Delete old pods that are not available at once, and of the others as many as `maxUnavailable` allows."""
    steps, candidates, missing = Steps(), [], 0
    for here in pods.values():
        alive = [pod for pod in here if not pod.view.is_terminal]
        current = [pod for pod in alive if is_current(pod, hashed)]
        old = [pod for pod in alive if not is_current(pod, hashed)]
        if not any(available(pod) and not is_going(pod) for pod in alive):
            missing += 1
            steps.delete += [pod for pod in old if not is_going(pod)]
        elif old and not current:
            candidates += [pod for pod in old if not is_going(pod)]
    steps.delete += candidates[: max(allowed - missing, 0)]
    return steps


def _with_surge(pods: Pods, hashed: str, allowed: int, available: Callable[[OnePod], bool]) -> Steps:
    """A new pod beside the old one first; the old one goes when the new one is available."""
    steps, surging, waiting = Steps(), 0, []
    for node, here in pods.items():
        alive = [pod for pod in here if not pod.view.is_terminal]
        current = [pod for pod in alive if is_current(pod, hashed)]
        old = [pod for pod in alive if not is_current(pod, hashed) and not is_going(pod)]
        if not old:
            continue
        if any(map(available, current)):
            steps.delete += old
        elif current:
            surging += 1
        elif not any(map(available, old)):
            steps.make.append(node)
            surging += 1
        else:
            waiting.append(node)
    steps.make += waiting[: max(allowed - surging, 0)]
    return steps


def is_surging(daemon_set: OneSet, desired: int) -> bool:
    rolling = daemon_set.view.spec.update_strategy.rolling_update
    return bool(rolling and scaled(rolling.max_surge, desired, round_up=True))


def is_current(pod: OnePod, hashed: str) -> bool:
    return pod.view.metadata.labels.get(HASH) == hashed


def is_going(pod: OnePod) -> bool:
    return pod.view.metadata.deletion_timestamp is not None


def _age(pod: OnePod) -> tuple[bool, str, str]:
    """Bound ones first, then the oldest."""
    metadata = pod.view.metadata
    return not pod.view.spec.node_name, metadata.creation_timestamp or "", metadata.name
