"""Pods that others made room for, and the nodes that they wait for.

In:  what preemption decides; pods as informers see them, which after a restart tell what was decided before.
Out: nodes as a pod sees them: with the pods of higher priority that are on their way there.

A nomination ends when its pod is placed or gone, or when preemption finds another place or none. It reserves nothing
against pods of the same or of higher priority.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from drakit.api.objects.partial import Partial
from drakit.api.objects.pods import Pod
from drakit.scheduler.cache.cache import SchedulerCache
from drakit.scheduler.framework import NodeInfo, on_node

NominationListener = Callable[[Pod, bool], None]
"""(the pod, as it would have been on its node; whether its place is free now)"""


class Nomination(msgspec.Struct, frozen=True):
    """`pod` has the nominated node as `spec.node_name`, and counts there like an assumed pod."""

    pod: Pod

    @property
    def node(self) -> str:
        return self.pod.spec.node_name

    @property
    def priority(self) -> int:
        return priority_of(self.pod)


class Nominations:
    """`cache` knows the pods that count on a node already, bound or assumed."""

    def __init__(self, cache: SchedulerCache) -> None:
        self._cache = cache
        self._known: dict[str, Nomination] = {}
        self._listeners: list[NominationListener] = []

    def __len__(self) -> int:
        return len(self._known)

    def on_end(self, listener: NominationListener) -> None:
        """Register a callback for the end of a nomination."""
        self._listeners.append(listener)

    def put(self, pod: Pod) -> None:
        """A pod that waits for `spec.node_name`."""
        self._known[pod.metadata.uid] = Nomination(pod)

    def drop(self, uid: str, *, bound_to: str = "") -> None:
        """A pod waits no more: it is bound to a node, or gone, or must look elsewhere."""
        known = self._known.pop(uid, None)
        if known is not None:
            for listener in self._listeners:
                listener(known.pod, known.node != bound_to)

    def node_of(self, uid: str) -> str:
        """The node that a pod waits for; empty: none."""
        known = self._known.get(uid)
        return known.node if known is not None else ""

    def below(self, priority: int, node: str) -> list[Pod]:
        """The pods of lower priority that wait for a node."""
        return [each.pod for each in self._known.values() if each.node == node and each.priority < priority]

    def seen_by(self, pod: Pod, nodes: list[NodeInfo]) -> list[NodeInfo]:
        """The nodes, each with the pods of higher priority that wait for it."""
        expected = self._expected(pod) if self._known else {}
        return [_with(node, expected.get(node.name, ())) for node in nodes] if expected else nodes

    def _expected(self, pod: Pod) -> dict[str, list[Pod]]:
        found: dict[str, list[Pod]] = {}
        for uid, each in self._known.items():
            if uid != pod.metadata.uid and each.priority > priority_of(pod) and self._cache.pod(uid) is None:
                found.setdefault(each.node, []).append(each.pod)
        return found

    # What informers see

    def follow(self, old: Partial[Pod] | None, new: Partial[Pod] | None) -> None:
        if old is not None and (new is None or new.view.metadata.uid != old.view.metadata.uid):
            self.drop(old.view.metadata.uid)
        if new is None:
            return
        pod, uid = new.view, new.view.metadata.uid
        before = old.view.status.nominated_node_name if old is not None else ""
        if pod.spec.node_name or pod.is_terminal or pod.metadata.deletion_timestamp:
            self.drop(uid, bound_to=pod.spec.node_name)
        elif not pod.status.nominated_node_name:
            if before and before == self.node_of(uid):
                self.drop(uid)  # somebody took it back
        elif uid not in self._known and before != pod.status.nominated_node_name and self._cache.pod(uid) is None:
            self._known[uid] = Nomination(on_node(pod, pod.status.nominated_node_name))


def priority_of(pod: Pod) -> int:
    return pod.spec.priority or 0


def _with(node: NodeInfo, pods: Sequence[Pod]) -> NodeInfo:
    for pod in pods:
        node = node.with_pod(pod)
    return node
