"""NodeUnschedulable: a cordoned node takes only pods that tolerate the unschedulable taint."""

from __future__ import annotations

from collections.abc import Sequence

from drakit.api.objects.cluster import Node
from drakit.api.objects.pods import Pod
from drakit.base.taints import NO_SCHEDULE, Taint, tolerates
from drakit.base.wellknown import UNSCHEDULABLE_TAINT
from drakit.scheduler.config.names import NODE_UNSCHEDULABLE
from drakit.scheduler.framework import Action, CycleState, Hint, Interest, NodeInfo, Nodes, PluginStatus, Rejections
from drakit.scheduler.plugins.interests import on_node, on_the_pod, queue_if
from drakit.scheduler.plugins.noderesults import NONE_REFUSED, FilterResults

_TAINT = Taint(key=UNSCHEDULABLE_TAINT, effect=NO_SCHEDULE)
_CORDONED = PluginStatus.unresolvable("node(s) were unschedulable")


class NodeUnschedulable:
    name = NODE_UNSCHEDULABLE

    def __init__(self, nodes: Nodes | None = None) -> None:
        """`nodes` are those of the cluster: where all may be used, no node is looked at."""
        self._nodes = nodes
        self._results = FilterResults(lambda node: _CORDONED if node.node.spec.unschedulable else None)

    def filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Rejections:
        if self._nodes is not None and not self._nodes.cordoned:
            return NONE_REFUSED
        refused = self._results.rejections(nodes)
        return {} if refused and _is_tolerant(pod) else refused

    def interests(self) -> Sequence[Interest]:
        return (
            on_node(Action.ADD | Action.UPDATE_NODE_TAINTS, _after_node),
            on_the_pod(Action.UPDATE_POD_TOLERATIONS, _after_tolerations),
        )


def _is_tolerant(pod: Pod) -> bool:
    return any(tolerates(each, _TAINT) for each in pod.spec.tolerations)


def _after_node(pod: Pod, old: Node | None, new: Node) -> Hint:
    return queue_if((old is None or old.spec.unschedulable) and not new.spec.unschedulable)


def _after_tolerations(pod: Pod, old: Pod | None, new: Pod) -> Hint:
    return queue_if(pod.metadata.uid == new.metadata.uid and _is_tolerant(new))
