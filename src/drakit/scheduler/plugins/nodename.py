"""NodeName: a pod that names its node gets no other."""

from __future__ import annotations

from collections.abc import Sequence

from drakit.api.objects.pods import Pod
from drakit.scheduler.config.names import NODE_NAME
from drakit.scheduler.framework import SKIP, SUCCESS, Action, CycleState, Interest, NodeInfo, PluginStatus, Rejections
from drakit.scheduler.plugins.interests import on_node

_ANOTHER = PluginStatus.unresolvable("node(s) didn't match the requested node name")


class NodeName:
    name = NODE_NAME

    def pre_filter(self, state: CycleState, pod: Pod) -> tuple[PluginStatus, frozenset[str] | None]:
        return (SUCCESS if pod.spec.node_name else SKIP), None

    def filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Rejections:
        wanted = pod.spec.node_name
        if not wanted:
            return {}
        return {node.name: _ANOTHER for node in nodes if node.name != wanted}

    def interests(self) -> Sequence[Interest]:
        return (on_node(Action.ADD),)
