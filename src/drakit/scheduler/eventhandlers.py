"""What happens in the cluster, told to the cache and to the queue.

In:  informers of pods, nodes, and whatever kinds plugins hope for.
Out: nodes and bound pods in the cache, pods to be scheduled in the queue, and cluster events that wake pods: after the
     cache, and plugins that follow the same informers, know of them.

A pod that has ended is as good as gone. Pods of other schedulers count only once they are bound.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from drakit.api.objects.cluster import Node
from drakit.api.objects.partial import Partial
from drakit.api.objects.pods import Pod
from drakit.base.gates import FeatureGates
from drakit.client import CLAIMS, CLASSES, NODES, POD_GROUPS, PODS, SLICES, TAINT_RULES, Resource
from drakit.informers import Informers
from drakit.scheduler.cache import SchedulerCache
from drakit.scheduler.framework import Action, ClusterEvent, EventResource, Interest
from drakit.scheduler.framework.changes import node_change, pod_change
from drakit.scheduler.queue import SchedulingQueue

OTHERS: dict[EventResource, tuple[Resource[Any], str]] = {
    EventResource.CLAIM: (CLAIMS, "DynamicResourceAllocation"),
    EventResource.SLICE: (SLICES, "DynamicResourceAllocation"),
    EventResource.CLASS: (CLASSES, "DynamicResourceAllocation"),
    EventResource.TAINT_RULE: (TAINT_RULES, "DRADeviceTaintRules"),
    EventResource.POD_GROUP: (POD_GROUPS, "GenericWorkload"),
}
"""Kinds that only plugins know, by the name of their events, each with the gate without which no server has it."""

POD_ADDED = ClusterEvent(EventResource.POD, Action.ADD)
POD_GONE = ClusterEvent(EventResource.POD, Action.DELETE)
WAITING_POD_ADDED = ClusterEvent(EventResource.UNSCHEDULED_POD, Action.ADD)
WAITING_POD_GONE = ClusterEvent(EventResource.UNSCHEDULED_POD, Action.DELETE)
NODE_ADDED = ClusterEvent(EventResource.NODE, Action.ADD)
NODE_GONE = ClusterEvent(EventResource.NODE, Action.DELETE)


class EventHandlers:
    """`schedulers` are the names of those whose pods are ours."""

    def __init__(self, cache: SchedulerCache, queue: SchedulingQueue, schedulers: Collection[str]) -> None:
        self._cache = cache
        self._queue = queue
        self._schedulers = schedulers

    def subscribe(self, informers: Informers, interests: Mapping[str, Sequence[Interest]], gates: FeatureGates) -> None:
        """Follow pods, nodes and the other kinds that any plugin is interested in; one may be in all there are."""
        informers.of(NODES).subscribe(self.node)
        informers.of(PODS).subscribe(self.pod)
        wanted = {interest.event.resource for each in interests.values() for interest in each}
        for event, (resource, gate) in OTHERS.items():
            if event in wanted or (EventResource.WILDCARD in wanted and gates.enabled(gate)):
                informers.of(resource).subscribe(self._mover(event))

    def _mover(self, resource: EventResource) -> Callable[[Any, Any], None]:
        added, changed, gone = (ClusterEvent(resource, each) for each in (Action.ADD, Action.UPDATE, Action.DELETE))

        def handle(old: Any, new: Any) -> None:
            event = added if old is None else gone if new is None else changed
            self._queue.move(event, _viewed(old), _viewed(new))

        return handle

    # Nodes

    def node(self, old: Partial[Node] | None, new: Partial[Node] | None) -> None:
        if new is None:
            if old is not None:
                self._cache.remove_node(old.view.metadata.name)
                self._queue.move(NODE_GONE, old.view, None)
            return
        # Cache first: a pod that the event wakes is tried on what the cache has.
        self._cache.put_node(new.view)
        if old is None:
            self._queue.move(NODE_ADDED, None, new.view)
        elif changes := node_change(old.view, new.view):
            self._queue.move(ClusterEvent(EventResource.NODE, changes), old.view, new.view)

    # Pods

    def pod(self, old: Partial[Pod] | None, new: Partial[Pod] | None) -> None:
        # Deleted and created again while the watch was lost: two pods, though the informer shows one change.
        if old is not None and new is not None and old.view.metadata.uid != new.view.metadata.uid:
            self.pod(old, None)
            self.pod(None, new)
            return
        before = old if old is not None and not old.view.is_terminal else None
        after = new if new is not None and not new.view.is_terminal else None
        if after is None:
            if before is not None:
                self._gone(before)
        elif before is None:
            self._added(after)
        else:
            self._changed(before, after)

    def _added(self, pod: Partial[Pod]) -> None:
        if pod.view.spec.node_name:
            self._placed(pod.view)
        elif self._is_ours(pod):
            self._queue.add(pod)
            self._queue.move(WAITING_POD_ADDED, None, pod.view)

    def _changed(self, old: Partial[Pod], new: Partial[Pod]) -> None:
        if old.view.spec.node_name:
            self._cache.put_pod(new.view)
            changes = pod_change(old.view, new.view)
            self._queue.move(ClusterEvent(EventResource.POD, changes), old.view, new.view)
        elif new.view.spec.node_name:
            self._placed(new.view)
            if self._is_ours(old):
                self._queue.delete(new.view.metadata.uid)
        elif self._is_ours(new):
            self._changed_waiting(old, new)

    def _changed_waiting(self, old: Partial[Pod], new: Partial[Pod]) -> None:
        uid = new.view.metadata.uid
        assumed = self._cache.is_assumed(uid)
        if self._queue.get(uid) is not None or not assumed:  # in flight: it is needed when the binding fails
            self._queue.update(old, new)
        if assumed and new.view.metadata.deletion_timestamp and not old.view.metadata.deletion_timestamp:
            self._free_assumed(uid)

    def _gone(self, pod: Partial[Pod]) -> None:
        uid = pod.view.metadata.uid
        if pod.view.spec.node_name:
            self._cache.remove_pod(uid)
            self._queue.move(POD_GONE, pod.view, None)
        elif self._is_ours(pod):
            self._queue.delete(uid)
            if self._cache.is_assumed(uid):
                self._free_assumed(uid)
            self._queue.move(WAITING_POD_GONE, pod.view, None)

    def _placed(self, pod: Pod) -> None:
        self._cache.put_pod(pod)
        self._queue.move(POD_ADDED, None, pod)

    def _free_assumed(self, uid: str) -> None:
        """The pod is deleted while it is being bound: remove it from the cache now. Its binding fails and undoes the
        rest."""
        assumed = self._cache.pod(uid)
        self._cache.forget(uid)
        self._queue.move(POD_GONE, assumed, None)

    def _is_ours(self, pod: Partial[Pod]) -> bool:
        return pod.view.spec.scheduler_name in self._schedulers


def _viewed(obj: Any) -> Any:
    return obj.view if type(obj) is Partial else obj
