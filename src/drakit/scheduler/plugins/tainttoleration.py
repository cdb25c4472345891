"""TaintToleration: taints that a pod does not tolerate keep it away, or lower a node's score."""

from __future__ import annotations

from collections.abc import Sequence

from drakit.api.objects.cluster import Node
from drakit.api.objects.pods import Pod
from drakit.base.taints import PREFER_NO_SCHEDULE, Toleration, tolerates, untolerated
from drakit.scheduler.config.names import TAINT_TOLERATION
from drakit.scheduler.framework import Action, CycleState, Hint, Interest, NodeInfo, Nodes, PluginStatus, Rejections
from drakit.scheduler.plugins.interests import on_node, on_the_pod, queue_if
from drakit.scheduler.plugins.noderesults import NONE_REFUSED, FilterResults, RecentResults, Scores
from drakit.scheduler.plugins.normalization import MOST, normalize

_TAINTED = PluginStatus.unresolvable("node(s) had untolerated taint(s)")


class TaintToleration:
    name = TAINT_TOLERATION

    def __init__(self, nodes: Nodes | None = None) -> None:
        """`nodes` are those of the cluster: where none has taints, no node is looked at."""
        self._nodes = nodes
        self._results: RecentResults[FilterResults] = RecentResults()
        self._scores: RecentResults[Scores] = RecentResults()

    def filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Rejections:
        if self._nodes is not None and not self._nodes.tainted:
            return NONE_REFUSED
        tolerations = pod.spec.tolerations
        results = self._results.get(
            tolerations, lambda: FilterResults(lambda node: _TAINTED if _is_kept_away(node.node, tolerations) else None)
        )
        return results.rejections(nodes)

    def score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Sequence[int] | int:
        if self._nodes is not None and not self._nodes.tainted:
            return MOST
        tolerations = tuple(each for each in pod.spec.tolerations if each.effect in ("", PREFER_NO_SCHEDULE))
        scores = self._scores.get(tolerations, lambda: Scores(lambda node: _disliked(node.node, tolerations)))
        return normalize(scores.of(nodes), reverse=True)

    def interests(self) -> Sequence[Interest]:
        return (
            on_node(Action.ADD | Action.UPDATE_NODE_TAINTS, _after_node),
            on_the_pod(Action.UPDATE_POD_TOLERATIONS, _after_tolerations),
        )


def _is_kept_away(node: Node, tolerations: Sequence[Toleration]) -> bool:
    return untolerated(node.spec.taints, tolerations) is not None


def _disliked(node: Node, tolerations: Sequence[Toleration]) -> int:
    """How many PreferNoSchedule taints of the node are not tolerated."""
    return sum(
        taint.effect == PREFER_NO_SCHEDULE and not any(tolerates(each, taint) for each in tolerations)
        for taint in node.spec.taints
    )


def _after_node(pod: Pod, old: Node | None, new: Node) -> Hint:
    was_kept_away = old is None or _is_kept_away(old, pod.spec.tolerations)
    return queue_if(was_kept_away and not _is_kept_away(new, pod.spec.tolerations))


def _after_tolerations(pod: Pod, old: Pod | None, new: Pod) -> Hint:
    return queue_if(pod.metadata.uid == new.metadata.uid)
