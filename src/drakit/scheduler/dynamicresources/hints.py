"""Which changes in the cluster can help a pod that was refused for its claims.

In:  an event, and a pod that waits.
Out: whether the pod is worth another attempt. In doubt it is.
"""

from __future__ import annotations

from typing import Any

from drakit.api.objects.claims import ResourceClaim
from drakit.api.objects.classes import DeviceClass
from drakit.api.objects.cluster import Node
from drakit.api.objects.partial import Partial
from drakit.api.objects.pods import Pod
from drakit.api.objects.workloads import PodGroup
from drakit.api.podclaims import claim_names, pod_group_name
from drakit.scheduler.dynamicresources import nodeallocatable
from drakit.scheduler.dynamicresources.extended import hints as extended
from drakit.scheduler.dynamicresources.points.readiness import NotReady, pod_claims
from drakit.scheduler.dynamicresources.state.context import PluginContext
from drakit.scheduler.framework import Action, ClusterEvent, EventResource, EventScope, Hint, Interest


class Hints:
    def __init__(self, context: PluginContext) -> None:
        self._context = context
        gates = context.handle.gates
        self._extended = gates.enabled(extended.GATE)
        self._room_matters = gates.enabled("DRANodeAllocatableResources")

    def interests(self) -> list[Interest]:
        resource, action = EventResource, Action
        nodes = action.ADD | action.UPDATE_NODE_LABELS | action.UPDATE_NODE_ALLOCATABLE
        claims, changes = action.ADD | action.UPDATE | action.DELETE, action.ADD | action.UPDATE
        found = [
            Interest(ClusterEvent(resource.NODE, nodes), self.after_node),
            Interest(ClusterEvent(resource.CLAIM, claims), self.after_claim, EventScope(_claims_of, _concerned)),
            Interest(ClusterEvent(resource.TARGET_POD, action.UPDATE_POD_GENERATED_CLAIM), self.after_pod),
            Interest(ClusterEvent(resource.POD, action.DELETE), self.after_pod_gone),
            # A class that goes may leave the name of an extended resource to another one.
            Interest(ClusterEvent(resource.CLASS, changes | action.DELETE), self.after_class),
            # A slice too many makes a pool invalid: its end can help as well.
            Interest(ClusterEvent(resource.SLICE, changes | action.DELETE)),
        ]
        if self._context.handle.gates.enabled("DRADeviceTaintRules"):
            found.append(Interest(ClusterEvent(resource.TAINT_RULE, action.UPDATE | action.DELETE)))
        if self._context.handle.gates.enabled(nodeallocatable.GATE):
            found += nodeallocatable.interests()
        if self._context.groups is not None:
            found.append(Interest(ClusterEvent(resource.POD_GROUP, changes), self.after_group))
        return found

    def after_claim(self, pod: Pod, old: ResourceClaim | None, new: ResourceClaim | None) -> Hint:
        """Devices that became free may help any pod whose claims are there; otherwise only its own claims matter."""
        if self._extended and extended.claim_helps(pod, old, new):
            return Hint.QUEUE
        try:
            own = {claim.metadata.uid for _, claim in pod_claims(self._context, pod)}
        except NotReady:
            return Hint.SKIP
        if old is not None and old.status.allocation is not None and (new is None or new.status.allocation is None):
            return Hint.QUEUE
        if new is None or new.metadata.uid not in own:
            return Hint.SKIP
        # A finalizer or a label helps nobody; a status may.
        return Hint.SKIP if old is not None and old.status == new.status else Hint.QUEUE

    def after_class(self, pod: Pod, old: DeviceClass | None, new: DeviceClass | None) -> Hint:
        """A class matters to pods whose claims name it, to the devices that it helps to taint, and by its names."""
        changed = new if new is not None else old
        if changed is None or (old is not None and new is not None and old.spec == new.spec):
            return Hint.SKIP
        if self._extended and extended.class_helps(pod, old, new):
            return Hint.QUEUE
        return Hint.QUEUE if new is not None and self._names_class(pod, changed.metadata.name) else Hint.SKIP

    def _names_class(self, pod: Pod, name: str) -> bool:
        selectors = (each.spec.device_selector for each in self._context.inventory.rules.values())
        if any(each is not None and each.device_class_name == name for each in selectors):
            return True
        try:
            claims = [claim for _, claim in pod_claims(self._context, pod)]
        except NotReady:
            return False
        requests = [request for claim in claims for request in claim.spec.devices.requests]
        asked = [part for each in requests for part in (each.exactly, *each.first_available) if part is not None]
        return any(part.device_class_name == name for part in asked)

    def after_node(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        """Labels decide which devices a node has; its resources, who provides the extended ones."""
        if old is None or old.metadata.labels != new.metadata.labels or self._room_matters:
            return Hint.QUEUE
        return Hint.QUEUE if self._extended and extended.node_helps(pod, old, new) else Hint.SKIP

    def after_pod(self, pod: Pod, old: Any, new: Any) -> Hint:
        """The pod's claims were recorded: worth a try once all of them are there."""
        changed: Pod = new.view if type(new) is Partial else new
        if changed.metadata.uid != pod.metadata.uid:
            return Hint.SKIP
        try:
            for _ in pod_claims(self._context, changed):
                continue
        except NotReady:
            return Hint.SKIP
        return Hint.QUEUE

    def after_pod_gone(self, pod: Pod, old: Any, new: Any) -> Hint:
        """A pod that could not be bound gave back devices. Those of a pod that ran are told of by its claims."""
        gone: Pod = old.view if type(old) is Partial else old
        return Hint.QUEUE if gone.metadata.uid in self._context.given_back else Hint.SKIP

    def after_group(self, pod: Pod, old: PodGroup | None, new: PodGroup | None) -> Hint:
        """The pod's group came, or its claims did: they can be reserved for it. Conditions of a group help nobody."""
        if new is None or new.metadata.namespace != pod.metadata.namespace:
            return Hint.SKIP
        if old is not None and _is_told(old) == _is_told(new):
            return Hint.SKIP
        return Hint.QUEUE if new.metadata.name == pod_group_name(pod) else Hint.SKIP


def _is_told(group: PodGroup) -> tuple[object, ...]:
    """What decides about the claims that a group's pods can use: its identity and its claims."""
    return group.metadata.uid, group.spec.resource_claims, group.status.resource_claim_statuses


def _claims_of(pod: Pod) -> list[tuple[str, str]]:
    """The pod's claims, as far as they are known."""
    return [(pod.metadata.namespace, name) for name in claim_names(pod).values()]


def _concerned(old: ResourceClaim | None, new: ResourceClaim | None) -> list[tuple[str, str]] | None:
    """The claim that changed; None when devices may have become free, for those are for anybody."""
    if new is None or (old is not None and old.status.allocation is not None and new.status.allocation is None):
        return None
    return [(new.metadata.namespace, new.metadata.name)]
