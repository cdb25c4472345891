"""What about a node or a pod changed, as far as scheduling is concerned.

In:  two versions of a node or a pod.
Out: actions for a cluster event. A change of a node that can help nobody gives none; any change of a pod gives UPDATE.
"""

from __future__ import annotations

from drakit.api.footprint import pod_requests
from drakit.api.objects.cluster import Node
from drakit.api.objects.pods import Pod
from drakit.scheduler.framework.events import Action


def node_change(old: Node, new: Node) -> Action:
    changes = Action(0)
    if old.spec.taints != new.spec.taints or (old.spec.unschedulable and not new.spec.unschedulable):
        changes |= Action.UPDATE_NODE_TAINTS
    if old.status.allocatable != new.status.allocatable:
        changes |= Action.UPDATE_NODE_ALLOCATABLE
    if old.metadata.labels != new.metadata.labels:
        changes |= Action.UPDATE_NODE_LABELS
    if _conditions(old) != _conditions(new):
        changes |= Action.UPDATE_NODE_CONDITION
    if old.metadata.annotations != new.metadata.annotations:
        changes |= Action.UPDATE_NODE_ANNOTATIONS
    return changes


def _conditions(node: Node) -> dict[str, str]:
    """The conditions without heartbeat times: these change every few seconds and help no pod."""
    return {each.type: each.status for each in node.status.conditions}


def pod_change(old: Pod, new: Pod) -> Action:
    """All that changed; UPDATE alone when it is nothing that is told apart."""
    found = Action(0)
    if old.metadata.labels != new.metadata.labels:
        found |= Action.UPDATE_POD_LABELS
    if old.spec != new.spec:
        found |= _spec_change(old, new)
    if old.status != new.status:
        found |= _claims_change(old, new)
    if _asks_for_less(old, new):
        found |= Action.UPDATE_POD_SCALE_DOWN
    return found or Action.UPDATE


def _spec_change(old: Pod, new: Pod) -> Action:
    found = Action(0)
    if old.spec.tolerations != new.spec.tolerations:
        found |= Action.UPDATE_POD_TOLERATIONS
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        found |= Action.UPDATE_POD_GATES
    return found


def _claims_change(old: Pod, new: Pod) -> Action:
    before, after = old.status, new.status
    same = (
        before.resource_claim_statuses == after.resource_claim_statuses
        and before.extended_resource_claim_status == after.extended_resource_claim_status
    )
    return Action(0) if same else Action.UPDATE_POD_GENERATED_CLAIM


def _asks_for_less(old: Pod, new: Pod) -> bool:
    if old.spec == new.spec and _held(old) == _held(new):
        return False
    before = pod_requests(old, status=True)
    after = pod_requests(new, status=True)
    return any(name not in after or after[name] < amount for name, amount in before.items())


def _held(pod: Pod) -> tuple[object, ...]:
    """The parts of the status that decide how much of the node the pod takes."""
    status = pod.status
    started = (*status.container_statuses, *status.init_container_statuses)
    resizing = (status.resize, status.conditions) if started else ()
    return started, resizing, status.node_allocatable_resource_claim_statuses
