"""What if: would a pod fit on a node, if some of the pods there were gone?

In:  a pod, the profile that it is scheduled by, the cluster as it is now.
Out: answers. Nothing is changed, and all holds as long as nobody gives up control.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from drakit.api.objects.pods import Pod
from drakit.scheduler.cycles.diagnosis import SchedulingRefusal
from drakit.scheduler.cycles.nodesearch import before_filter, filter_nodes
from drakit.scheduler.framework import Code, CycleState, NodeInfo, PluginStatus, PreemptionExtensions, Profile


class Trial:
    """`nodes` are all there are, as the pod sees them."""

    def __init__(
        self,
        profile: Profile,
        keeps: Sequence[PreemptionExtensions],
        nodes: Sequence[NodeInfo],
        pod: Pod,
        document: Any,
    ) -> None:
        self._profile = profile
        self._pod = pod
        self._state = CycleState(pod, document)
        self._without = [each.suppose(pod) for each in keeps]
        self.nodes = {node.name: node for node in nodes}
        restricted = before_filter(profile, self._state, pod, nodes)
        self.can_fit = not isinstance(restricted, SchedulingRefusal)
        """Whether any node comes into question, whoever goes."""
        only = None if isinstance(restricted, SchedulingRefusal) else restricted[0]
        self._eligible = [node for node in nodes if only is None or node.name in only]

    def fits_already(self) -> bool:
        """Whether the pod fits somewhere with everybody in place: something was done about it just now."""
        refused = filter_nodes(self._profile, self._state.fork(), self._pod, self._eligible)
        return not isinstance(refused, SchedulingRefusal) and len(refused) < len(self._eligible)

    def candidates(self, rejections: Mapping[str, PluginStatus]) -> list[NodeInfo]:
        """The nodes on which it could help that pods go."""
        return [
            node
            for node in self._eligible
            if (status := rejections.get(node.name)) is not None and status.code is Code.UNSCHEDULABLE
        ]

    def check(self, node: NodeInfo, gone: Sequence[Pod]) -> PluginStatus | None:
        """Why the pod would not fit on the node without these pods; None if it would."""
        state, changed = self.suppose(node, gone)
        refused = filter_nodes(self._profile, state, self._pod, [changed])
        return refused.status if isinstance(refused, SchedulingRefusal) else refused.get(node.name)

    def suppose(self, node: NodeInfo, gone: Sequence[Pod]) -> tuple[CycleState, NodeInfo]:
        """State and node as they would be without these pods."""
        state, uids = self._state.fork(), [pod.metadata.uid for pod in gone]
        for without in self._without:
            without(state, uids)
        for uid in uids:
            node = node.without_pod(uid)
        return state, node
