"""The nodes that fit a pod: not all of them, but enough, and other ones next time.

In:  a pod, the nodes as they are now.
Out: feasible nodes in the order of the search, or why there are none.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from drakit.api.objects.pods import Pod
from drakit.scheduler.cache.nominations import Nominations
from drakit.scheduler.cycles.diagnosis import SchedulingRefusal, failed, in_brackets, of_all, of_each, without_nodes
from drakit.scheduler.framework import SUCCESS, Code, CycleState, NodeInfo, Nodes, PluginStatus, Profile
from drakit.scheduler.metrics.timing import Laps

LEAST_NODES = 100
_LEAST_PERCENTAGE = 5
_LEAST_BATCH = 32


class Found(msgspec.Struct, frozen=True, gc=False):
    nodes: list[NodeInfo]
    evaluated: int


class NodeSearch:
    """Invariant: `_start` is where the next search begins, so that every node gets its turn."""

    def __init__(self, nodes: Nodes, nominations: Nominations) -> None:
        self._nodes = nodes
        self._nominations = nominations
        self._start = 0

    def find(self, profile: Profile, state: CycleState, pod: Pod, laps: Laps) -> Found | SchedulingRefusal:
        everything = self._nominations.seen_by(pod, self._nodes.all())
        if not everything:
            return without_nodes()
        restricted = before_filter(profile, state, pod, everything)
        if isinstance(restricted, SchedulingRefusal):
            laps.end("PreFilter", restricted.status.code)
            return restricted
        laps.end("PreFilter")
        found = self._among(profile, state, pod, everything, *restricted)
        laps.end("Filter", found.status.code if isinstance(found, SchedulingRefusal) else Code.SUCCESS)
        return found

    def _among(
        self,
        profile: Profile,
        state: CycleState,
        pod: Pod,
        everything: list[NodeInfo],
        names: frozenset[str] | None,
        plugins: frozenset[str],
    ) -> Found | SchedulingRefusal:
        nominated = self._nominated(pod)
        # Preemption made room there for this pod: if it fits, other nodes are not looked at.
        if nominated is not None and (names is None or nominated.name in names):
            first = filter_nodes(profile, state, pod, [nominated])
            if first == {}:
                return Found([nominated], 1)
        nodes = everything if names is None else [each for each in everything if each.name in names]
        return self._search(profile, state, pod, nodes, len(everything), plugins)

    def _nominated(self, pod: Pod) -> NodeInfo | None:
        name = self._nominations.node_of(pod.metadata.uid) or pod.status.nominated_node_name
        node = self._nodes.get(name) if name else None
        return self._nominations.seen_by(pod, [node])[0] if node is not None else None

    def _search(
        self,
        profile: Profile,
        state: CycleState,
        pod: Pod,
        nodes: list[NodeInfo],
        total: int,
        plugins: frozenset[str],
    ) -> Found | SchedulingRefusal:
        # Without scores, any node that fits is as good as another: the first one will do.
        wanted = enough(len(nodes), profile.percentage) if profile.score else 1
        start = self._start % len(nodes) if nodes else 0
        order = nodes[start:] + nodes[:start] if start else nodes
        rejections: dict[str, PluginStatus] = {}
        feasible: list[NodeInfo] = []
        position = 0
        while position < len(order) and len(feasible) < wanted:
            # Plugins filter many nodes in one call, which is where their caches pay. Small batches would lose that.
            batch = order[position : position + max(wanted - len(feasible), _LEAST_BATCH)]
            refused = filter_nodes(profile, state, pod, batch)
            if isinstance(refused, SchedulingRefusal):
                self._start = (self._start + position) % total
                return refused
            feasible += [node for node in batch if node.name not in refused] if refused else batch
            rejections.update(refused)
            position += len(batch)
        # A batch may find more than is wanted: the next search begins at the first node that was not needed.
        if len(feasible) > wanted:
            position = order.index(feasible[wanted])
            del feasible[wanted:]
        self._start = (self._start + position) % total
        if not feasible:
            return of_each(rejections, total, plugins=plugins)
        return Found(feasible, position)


def before_filter(
    profile: Profile, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
) -> tuple[frozenset[str] | None, frozenset[str]] | SchedulingRefusal:
    """Run PreFilter: the only nodes that can work (None: any), and the plugins that excluded the others."""
    names: frozenset[str] | None = None
    restricting: set[str] = set()
    refusal: PluginStatus | None = None
    for plugin in profile.pre_filter:
        status, only = plugin.pre_filter(state, pod)
        if status.code is Code.SKIP:
            state.skip_filter.add(plugin.name)
        elif status.code is Code.UNSCHEDULABLE:
            refusal = status.by(plugin.name)  # the others still prepare what preemption needs
        elif status.is_rejected:
            return of_all(status.by(plugin.name), nodes)
        elif not status.ok:
            return failed(_told(status, f'running PreFilter plugin "{plugin.name}"'))
        elif only is not None:
            restricting.add(plugin.name)
            names = only if names is None else names & only
            if not names:
                return of_all(_excluded(restricting), nodes, plugins=frozenset(restricting))
    if refusal is not None:
        return of_all(refusal, nodes, plugins=frozenset(restricting))
    return names, frozenset(restricting)


def filter_nodes(
    profile: Profile, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
) -> dict[str, PluginStatus] | SchedulingRefusal:
    """Run Filter: the nodes that do not fit, each with the status of the first plugin that refused it."""
    refused: dict[str, PluginStatus] = {}
    left = nodes
    for plugin in profile.filter:
        if plugin.name in state.skip_filter:
            continue
        said = plugin.filter(state, pod, left)
        if not said:
            continue
        last, named = None, SUCCESS
        for name, status in said.items():
            # Plugins mostly say the same of many nodes: it is looked at once.
            if status is not last:
                if not status.is_rejected:
                    return failed(_told(status, f'running "{plugin.name}" filter plugin'))
                last, named = status, status.by(plugin.name)
            refused[name] = named
        # Later plugins see only nodes that are still possible, so the first refusal is the one that is told.
        left = [node for node in left if node.name not in said]
        if not left:
            break
    return refused


def enough(nodes: int, percentage: int) -> int:
    """How many feasible nodes to find among so many: all of a hundred, a smaller part the more there are."""
    if nodes < LEAST_NODES:
        return nodes
    part = percentage or max(50 - nodes // 125, _LEAST_PERCENTAGE)
    return max(nodes * part // 100, LEAST_NODES)


def _excluded(plugins: set[str]) -> PluginStatus:
    if len(plugins) == 1:
        return PluginStatus.unresolvable(f"node(s) didn't satisfy plugin {next(iter(plugins))}")
    return PluginStatus.unresolvable(f"node(s) didn't satisfy plugin(s) {in_brackets(plugins)} simultaneously")


def _told(status: PluginStatus, doing: str) -> PluginStatus:
    return PluginStatus(Code.ERROR, (f"{doing}: {status.message}",), error=status.error)
