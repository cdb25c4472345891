"""NodeResourcesFit: a node must have room for what the pod requests; the score says how good the fit is.

In:  what the pod asks for (containers, init containers and sidecars, overhead, pod-level amounts), the node's ledger.
Out: every resource that falls short. UNRESOLVABLE when the node would not have enough even if it were empty.

An extended resource that a DeviceClass provides, on a node that does not advertise it, is not checked here:
DynamicResources allocates the devices, or refuses the node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from drakit.api.objects.cluster import Node
from drakit.api.objects.pods import Pod
from drakit.scheduler.config.args import NodeResourcesFitArgs
from drakit.scheduler.config.names import NODE_RESOURCES_FIT
from drakit.scheduler.framework import Action, Code, CycleState, Interest, NodeInfo, PluginStatus, Rejections
from drakit.scheduler.framework.footprints import PODS, Amounts, footprint_of
from drakit.scheduler.plugins.amounts import Totals, depends_on_devices, no_devices
from drakit.scheduler.plugins.fithints import FitHints
from drakit.scheduler.plugins.interests import on_bound_pod, on_class, on_node, on_the_pod
from drakit.scheduler.plugins.noderesults import FilterResults, RecentResults, Scores
from drakit.scheduler.plugins.resources import PLAIN, is_extended, is_scalar
from drakit.scheduler.plugins.strategies import Weighed, scorer, weighed

IsBackedByClass = Callable[[str, NodeInfo], bool]
"""Whether devices of a class provide a resource on a node that does not advertise it.

The answer may depend on the node only by whether its allocatable has the resource: of all nodes that lack it, one is
asked about.
"""

Asked = tuple[tuple[str, int], ...]
_TOO_MANY_PODS = "Too many pods"


def never(resource: str, node: NodeInfo) -> bool:
    return False


def perhaps(resource: str) -> bool:
    return True


class NodeResourcesFit:
    name = NODE_RESOURCES_FIT

    def __init__(
        self,
        args: NodeResourcesFitArgs | None = None,
        *,
        is_backed_by_class: IsBackedByClass = never,
        is_advertised: Callable[[str], bool] = perhaps,
        totals: Totals = no_devices,
    ) -> None:
        """`is_advertised`: whether some node may have a resource itself."""
        args = args or NodeResourcesFitArgs()
        self._is_backed = is_backed_by_class
        self._is_advertised = is_advertised
        self._totals = totals
        self._ignored = frozenset(args.ignored_resources)
        self._ignored_groups = frozenset(args.ignored_resource_groups)
        self._strategy = args.scoring_strategy
        self._asked: RecentResults[Asked] = RecentResults(most=256)
        self._results: RecentResults[FilterResults] = RecentResults()
        self._weighed: RecentResults[Weighed] = RecentResults(most=256)
        self._scores: RecentResults[Scores] = RecentResults()

    def filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Rejections:
        asked = self._asked_by(pod)
        devices = self._provided_by_devices(asked, nodes)
        if devices and not any(map(self._is_advertised, devices)):
            # Devices provide these everywhere, so no node is asked for them: pods that differ in nothing else ask the
            # same. With 25 such resources in turn, every pod would look anew at 25 nodes that changed meanwhile.
            asked, devices = tuple(each for each in asked if each[0] not in devices), frozenset()
        results = self._results.get(
            (asked, devices), lambda: FilterResults(lambda node: check_node(asked, devices, node))
        )
        return results.rejections(nodes)

    def score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Sequence[int]:
        footprint = footprint_of(pod)
        # By what the strategy looks at: pods that ask for different devices share the scores of nodes.
        wanted = self._weighed.get(
            footprint, lambda: weighed(self._strategy, {**footprint.asked, **footprint.nonzero_asked})
        )
        if depends_on_devices((each.name for each in self._strategy.resources), footprint.asked):
            return self._begin_scores(wanted).of(nodes)
        return self._scores.get(wanted, lambda: self._begin_scores(wanted)).of(nodes)

    def _begin_scores(self, wanted: Weighed) -> Scores:
        return Scores(scorer(self._strategy, wanted, self._totals))

    def _asked_by(self, pod: Pod) -> Asked:
        footprint = footprint_of(pod)
        return self._asked.get(footprint, lambda: self._counted(footprint.asked))

    def _counted(self, amounts: Amounts) -> Asked:
        """The requests that a node is checked for, without ignored resources, in the order of the reasons."""
        plain = [name for name in PLAIN if amounts.get(name, 0) > 0]
        others = sorted(name for name, amount in amounts.items() if amount and name not in PLAIN and is_scalar(name))
        return tuple((name, amounts[name]) for name in (*plain, *others) if not self._is_ignored(name))

    def _is_ignored(self, name: str) -> bool:
        if not (self._ignored or self._ignored_groups) or not is_extended(name):
            return False
        return name in self._ignored or name.partition("/")[0] in self._ignored_groups

    def _provided_by_devices(self, asked: Asked, nodes: Sequence[NodeInfo]) -> frozenset[str]:
        if self._is_backed is never or all(name in PLAIN for name, _ in asked):
            return frozenset()
        found = set()
        for name, _ in asked:
            without = next((node for node in nodes if not node.allocatable.get(name)), None) if "/" in name else None
            if without is not None and self._is_backed(name, without):
                found.add(name)
        return frozenset(found)

    def interests(self) -> Sequence[Interest]:
        hints = FitHints(self._fits_empty, self._is_backed)
        return (
            on_bound_pod(Action.DELETE | Action.UPDATE_POD_SCALE_DOWN, hints.after_pod),
            on_the_pod(Action.UPDATE_POD_SCALE_DOWN, hints.after_pod),
            on_node(Action.ADD | Action.UPDATE_NODE_ALLOCATABLE, hints.after_node),
            on_class(Action.ADD | Action.UPDATE, hints.after_class),
        )

    def _fits_empty(self, pod: Pod, node: Node) -> bool:
        """Whether the pod would fit if it were alone there."""
        asked, alone = self._asked_by(pod), NodeInfo(node)
        return check_node(asked, self._provided_by_devices(asked, [alone]), alone) is None


def check_node(asked: Asked, devices: frozenset[str], node: NodeInfo) -> PluginStatus | None:
    """Why the requests do not fit, or None. `devices` are resources that devices provide where the node has none."""
    allocatable, requested = node.allocatable, node.requested
    reasons, code = [], Code.UNSCHEDULABLE
    if len(node.pods) + 1 > allocatable.get(PODS, 0):
        reasons.append(_TOO_MANY_PODS)
    for name, amount in asked:
        capacity = allocatable.get(name, 0)
        if amount <= capacity - requested.get(name, 0) or (name in devices and not capacity):
            continue
        reasons.append(f"Insufficient {name}")
        if amount > capacity:
            code = Code.UNRESOLVABLE
    return PluginStatus(code, tuple(reasons)) if reasons else None
