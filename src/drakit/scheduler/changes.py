"""What about a node changed, as far as it matters for placing pods.

In:  two versions of a node.
Out: actions for a cluster event; a change that can help nobody gives none.
"""

from __future__ import annotations

from drakit.api.objects.cluster import Node
from drakit.scheduler.framework import Action


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
    """Without the times of heartbeats."""
    return {each.type: each.status for each in node.status.conditions}
