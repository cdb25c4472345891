"""NodePorts: a port of the host belongs to one pod of a node at a time.

The address 0.0.0.0 stands for all addresses: a port there collides with that port on any address.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from drakit.api.objects.pods import Pod
from drakit.scheduler.config.names import NODE_PORTS
from drakit.scheduler.framework import (
    SKIP,
    SUCCESS,
    Action,
    CycleState,
    Hint,
    Interest,
    NodeInfo,
    PluginStatus,
    Rejections,
)
from drakit.scheduler.framework.footprints import ANY_ADDRESS
from drakit.scheduler.framework.nodes import Port, ports_of
from drakit.scheduler.plugins.interests import on_bound_pod, on_node, queue_if
from drakit.scheduler.plugins.noderesults import FilterResults, RecentResults

_TAKEN = PluginStatus.unschedulable("node(s) didn't have free ports for the requested pod ports")


class NodePorts:
    name = NODE_PORTS

    def __init__(self) -> None:
        self._results: RecentResults[FilterResults] = RecentResults()

    def pre_filter(self, state: CycleState, pod: Pod) -> tuple[PluginStatus, frozenset[str] | None]:
        return (SUCCESS if ports_of(pod) else SKIP), None

    def filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Rejections:
        wanted = ports_of(pod)
        results = self._results.get(
            wanted, lambda: FilterResults(lambda node: _TAKEN if collide(wanted, node.ports) else None)
        )
        return results.rejections(nodes)

    def interests(self) -> Sequence[Interest]:
        return on_bound_pod(Action.DELETE, _after_pod), on_node(Action.ADD)


def collide(wanted: Iterable[Port], taken: Iterable[Port]) -> bool:
    addresses: dict[tuple[str, int], set[str]] = {}
    for address, protocol, number in taken:
        addresses.setdefault((protocol, number), set()).add(address)
    return any(_is_among(address, addresses.get((protocol, number), set())) for address, protocol, number in wanted)


def _is_among(address: str, addresses: set[str]) -> bool:
    if address == ANY_ADDRESS:
        return bool(addresses)
    return address in addresses or ANY_ADDRESS in addresses


def _after_pod(pod: Pod, old: Pod, new: Pod | None) -> Hint:
    had_node = bool(old.spec.node_name or old.status.nominated_node_name)
    return queue_if(had_node and collide(ports_of(pod), ports_of(old)))
