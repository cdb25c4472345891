"""Cluster events, and whether one can help a pod that did not fit.

In:  changes that informers saw, as (old, new).
Out: `ClusterEvent`s for the queue. A plugin names the events that it is interested in; each with a hint function, which
     says for one pod that the plugin refused whether this very change may make it fit. No function: it always may.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from enum import IntEnum, IntFlag, StrEnum, auto
from typing import Any

import msgspec

from drakit.api.objects.pods import Pod


class EventResource(StrEnum):
    POD = "Pod"  # a pod that is bound to a node
    UNSCHEDULED_POD = "UnscheduledPod"  # one that still waits, other than the pod that is asked about
    TARGET_POD = "TargetPod"  # the pod itself
    NODE = "Node"
    CLAIM = "ResourceClaim"
    SLICE = "ResourceSlice"
    CLASS = "DeviceClass"
    TAINT_RULE = "DeviceTaintRule"
    POD_GROUP = "PodGroup"
    WILDCARD = "*"  # anything may have changed: nobody is asked for a hint


class Action(IntFlag):
    """What happened. An update says which part changed, as far as it is known."""

    ADD = auto()
    DELETE = auto()
    UPDATE_NODE_ALLOCATABLE = auto()
    UPDATE_NODE_LABELS = auto()
    UPDATE_NODE_TAINTS = auto()
    UPDATE_NODE_CONDITION = auto()
    UPDATE_NODE_ANNOTATIONS = auto()
    UPDATE_POD_LABELS = auto()
    UPDATE_POD_SCALE_DOWN = auto()  # it asks for less than before
    UPDATE_POD_TOLERATIONS = auto()
    UPDATE_POD_GATES = auto()  # scheduling gates were removed
    UPDATE_POD_GENERATED_CLAIM = auto()  # status.resourceClaimStatuses changed
    UPDATE = auto()  # of a kind whose parts are not told apart, or another part
    ANY_UPDATE = (
        UPDATE_NODE_ALLOCATABLE
        | UPDATE_NODE_LABELS
        | UPDATE_NODE_TAINTS
        | UPDATE_NODE_CONDITION
        | UPDATE_NODE_ANNOTATIONS
        | UPDATE_POD_LABELS
        | UPDATE_POD_SCALE_DOWN
        | UPDATE_POD_TOLERATIONS
        | UPDATE_POD_GATES
        | UPDATE_POD_GENERATED_CLAIM
        | UPDATE
    )
    ALL = ADD | DELETE | ANY_UPDATE


_RESOURCE_LABELS: dict[EventResource, str] = {
    EventResource.POD: "AssignedPod",
    EventResource.TARGET_POD: "UnscheduledPod",
    EventResource.CLAIM: "resource.k8s.io/ResourceClaim",
    EventResource.SLICE: "resource.k8s.io/ResourceSlice",
    EventResource.CLASS: "resource.k8s.io/DeviceClass",
    EventResource.TAINT_RULE: "resource.k8s.io/DeviceTaintRule",
    EventResource.POD_GROUP: "scheduling.k8s.io/PodGroup",
}
_ACTION_LABELS = {
    Action.ADD: "Add",
    Action.DELETE: "Delete",
    Action.UPDATE_NODE_ALLOCATABLE: "UpdateNodeAllocatable",
    Action.UPDATE_NODE_LABELS: "UpdateNodeLabel",
    Action.UPDATE_NODE_TAINTS: "UpdateNodeTaint",
    Action.UPDATE_NODE_CONDITION: "UpdateNodeCondition",
    Action.UPDATE_NODE_ANNOTATIONS: "UpdateNodeAnnotation",
    Action.UPDATE_POD_LABELS: "UpdatePodLabel",
    Action.UPDATE_POD_SCALE_DOWN: "UpdatePodScaleDown",
    Action.UPDATE_POD_TOLERATIONS: "UpdatePodToleration",
    Action.UPDATE_POD_GATES: "UpdatePodSchedulingGatesEliminated",
    Action.UPDATE_POD_GENERATED_CLAIM: "UpdatePodGeneratedResourceClaim",
}


class ClusterEvent(msgspec.Struct, frozen=True, gc=False):
    resource: EventResource
    action: Action

    def matches(self, happened: ClusterEvent) -> bool:
        """Whether an interest in this covers what happened."""
        if EventResource.WILDCARD in (self.resource, happened.resource):
            return True
        return self.resource is happened.resource and bool(self.action & happened.action)

    @property
    def label(self) -> str:
        """As metrics and logs name it, in the words of kube-scheduler; several updates at once are an `Update`."""
        whole = "All" if self.action == Action.ALL else "Update"
        return _RESOURCE_LABELS.get(self.resource, self.resource) + _ACTION_LABELS.get(self.action, whole)


class Hint(IntEnum):
    SKIP = 0
    QUEUE = 1


HintFunction = Callable[[Pod, Any, Any], Hint]
"""(the pod that waits, the object before, the object after); pods and nodes come as their views."""


class EventScope(msgspec.Struct, frozen=True):
    """Which pods a change can concern at all, found by what they have in common with it: nobody else is asked.

    `of_change` of None: it may concern any pod. `of_pod` looks at nothing but the pod.
    """

    of_pod: Callable[[Pod], Iterable[Hashable]]
    of_change: Callable[[Any, Any], Iterable[Hashable] | None]


class Interest(msgspec.Struct, frozen=True):
    """`scope` spares questions where many pods wait and most changes are about one of them."""

    event: ClusterEvent
    hint: HintFunction | None = None
    scope: EventScope | None = None


EVERYTHING = ClusterEvent(EventResource.WILDCARD, Action.ALL)
