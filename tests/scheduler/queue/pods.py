"""Pods, a queue with two plugins, and a record of its metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from drakit.api.objects.partial import Partial
from drakit.api.objects.pods import Pod
from drakit.base.clock import FakeClock
from drakit.scheduler.framework import SUCCESS, Action, ClusterEvent, EventResource, Hint, Interest, PluginStatus
from drakit.scheduler.queue import QueuedPod, SchedulingQueue

FIT = "NodeResourcesFit"
CLAIMS = "DynamicResources"
GATES = "SchedulingGates"
SCHEDULER = "default-scheduler"

NODE_ADDED = ClusterEvent(EventResource.NODE, Action.ADD)
CLAIM_CHANGED = ClusterEvent(EventResource.CLAIM, Action.UPDATE)


def queued_pod(name: str, *, priority: int | None = None, gate: str = "", **status: Any) -> Partial[Pod]:
    spec: dict[str, Any] = {"containers": [{"name": "main"}], "schedulerName": SCHEDULER}
    if priority is not None:
        spec["priority"] = priority
    if gate:
        spec["schedulingGates"] = [{"name": gate}]
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return Partial.of(Pod, {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec, "status": status})


def named(pod: Pod, _old: Any, new: Any) -> Hint:
    """The change helps the pods that it names."""
    return Hint.QUEUE if new is not None and pod.metadata.name in new else Hint.SKIP


def gates(pod: Pod) -> PluginStatus:
    return PluginStatus.unresolvable("gated").by(GATES) if pod.spec.scheduling_gates else SUCCESS


INTERESTS: Mapping[str, Sequence[Interest]] = {
    FIT: (
        Interest(NODE_ADDED),
        Interest(ClusterEvent(EventResource.TARGET_POD, Action.UPDATE_POD_SCALE_DOWN)),
    ),
    CLAIMS: (
        Interest(ClusterEvent(EventResource.CLAIM, Action.ADD | Action.ANY_UPDATE), named),
        Interest(ClusterEvent(EventResource.TARGET_POD, Action.UPDATE_POD_GENERATED_CLAIM)),
    ),
    GATES: (Interest(ClusterEvent(EventResource.POD_GROUP, Action.ADD), named),),
}


class RecordedMetrics:
    def __init__(self) -> None:
        self.came: Counter[tuple[str, str]] = Counter()
        self.refused: Counter[tuple[str, str]] = Counter()

    def incoming(self, part: str, event: str) -> None:
        self.came[part, event] += 1

    def unschedulable(self, plugin: str, profile: str, change: int) -> None:
        self.refused[plugin, profile] += change


def queue(
    clock: FakeClock | None = None,
    *,
    interests: Mapping[str, Sequence[Interest]] = INTERESTS,
    pre_enqueue: Callable[[Pod], PluginStatus] = gates,
    metrics: RecordedMetrics | None = None,
    pop_early: bool = False,
) -> SchedulingQueue:
    return SchedulingQueue(
        clock or FakeClock(),
        interests=interests,
        pre_enqueue={SCHEDULER: (Asked(pre_enqueue),)},
        metrics=metrics,
        pop_early=pop_early,
    )


class Asked:
    """A plugin of PreEnqueue that asks a function."""

    name = "Asked"

    def __init__(self, pre_enqueue: Callable[[Pod], PluginStatus]) -> None:
        self.pre_enqueue = pre_enqueue


def popped(made: SchedulingQueue) -> QueuedPod:
    found = made.pop_now()
    assert found is not None
    return found


def names(made: SchedulingQueue) -> list[str]:
    """Pop all that can be popped."""
    found = []
    while (queued := made.pop_now()) is not None:
        found.append(queued.pod.view.metadata.name)
    return found


def refused(made: SchedulingQueue, name: str, *plugins: str, pending: Sequence[str] = ()) -> QueuedPod:
    """Add a pod and let an attempt at it fail."""
    made.add(queued_pod(name))
    queued = made.take([f"uid-{name}"])[0]
    made.put_back(queued, unschedulable=plugins, pending=pending)
    return queued


def where(made: SchedulingQueue, name: str) -> str:
    queued = made.get(f"uid-{name}")
    return queued.part if queued is not None else "nowhere"
