"""PodTopologySpread: as many pods of a kind in one zone, rack or node as in the others, as far as a pod asks for it.

In:  a pod with constraints, or of a ReplicaSet; the nodes and the pods on them.
Out: nodes on which the pod would make the difference too large; scores that like what makes it smaller.

A pod without constraints and without a ReplicaSet costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from drakit.api.objects.cluster import Node
from drakit.api.objects.pods import Pod
from drakit.base.taints import untolerated
from drakit.scheduler.config.args import PodTopologySpreadArgs
from drakit.scheduler.config.names import POD_TOPOLOGY_SPREAD
from drakit.scheduler.framework import (
    SKIP,
    SUCCESS,
    Action,
    CycleState,
    Handle,
    Hint,
    Interest,
    NodeInfo,
    PluginStatus,
    Rejections,
)
from drakit.scheduler.plugins.interests import on_bound_pod, on_node, on_the_pod, queue_if
from drakit.scheduler.plugins.nodeaffinity import required_of
from drakit.scheduler.plugins.noderesults import RecentResults
from drakit.scheduler.plugins.topology.counts import ByNode
from drakit.scheduler.plugins.topology.spreaddefaults import SpreadDefaults
from drakit.scheduler.plugins.topology.spreadscore import SpreadScore
from drakit.scheduler.plugins.topology.terms import (
    DO_NOT_SCHEDULE,
    SCHEDULE_ANYWAY,
    Constraints,
    SpreadConstraint,
    constraints_of,
)

_UNEVEN = PluginStatus.unschedulable("node(s) didn't match pod topology spread constraints")
_NO_LABEL = PluginStatus.unresolvable("node(s) didn't match pod topology spread constraints (missing required label)")


class Domains(NamedTuple):
    """One constraint, with the pods that it counts per value of its topology key."""

    constraint: SpreadConstraint
    pods: ByNode[int]
    counts: dict[str, int]

    def with_node(self, before: NodeInfo | None, now: NodeInfo) -> Domains:
        """As if one node was another. The domain counts if it did before: nodes are not added or removed."""
        value = now.node.metadata.labels.get(self.constraint.topology_key, "")
        if before is None or value not in self.counts:
            return self
        changed = self.pods.of(now) - self.pods.of(before)
        return self._replace(counts={**self.counts, value: self.counts[value] + changed})

    def refusal(self, node: Node, *, selects_itself: bool) -> PluginStatus | None:
        value = node.metadata.labels.get(self.constraint.topology_key)
        if value is None:
            return _NO_LABEL
        enough = len(self.counts) >= self.constraint.min_domains
        least = min(self.counts.values(), default=0) if enough else 0
        skew = self.counts.get(value, 0) + selects_itself - least
        return _UNEVEN if skew > self.constraint.max_skew else None


class PodTopologySpread:
    name = POD_TOPOLOGY_SPREAD

    def __init__(self, handle: Handle, args: PodTopologySpreadArgs | None = None) -> None:
        self._handle = handle
        self._defaults = SpreadDefaults(handle.informers, args or PodTopologySpreadArgs())
        self._pods: RecentResults[ByNode[int]] = RecentResults()

    def _constraints(self, pod: Pod, when_unsatisfiable: str) -> Constraints:
        if pod.spec.topology_spread_constraints:
            return constraints_of(pod, when_unsatisfiable)
        return self._defaults.of(pod, when_unsatisfiable)

    def pre_filter(self, state: CycleState, pod: Pod) -> tuple[PluginStatus, frozenset[str] | None]:
        if not pod.spec.topology_spread_constraints and not self._defaults.concern(pod):
            state.skip_score.add(self.name)
            return SKIP, None
        if not self._constraints(pod, SCHEDULE_ANYWAY):
            state.skip_score.add(self.name)
        constraints = self._constraints(pod, DO_NOT_SCHEDULE)
        if not constraints:
            return SKIP, None
        state.put(self.name, self._domains(pod, constraints))
        return SUCCESS, None

    def _domains(self, pod: Pod, constraints: Constraints) -> list[Domains]:
        made = [Domains(each, self._counter(pod, each), {}) for each in constraints]
        for node in self._handle.nodes.all():
            labels = node.node.metadata.labels
            if all(each.topology_key in labels for each in constraints):
                for constraint, pods, counts in made:
                    if counts_node(pod, constraint, node.node):
                        value = labels[constraint.topology_key]
                        counts[value] = counts.get(value, 0) + pods.of(node)
        return made

    def _counter(self, pod: Pod, constraint: SpreadConstraint) -> ByNode[int]:
        """How many pods of a node a constraint selects, remembered for all pods that ask the same."""
        namespace = pod.metadata.namespace

        def count(node: NodeInfo) -> int:
            return sum(
                each.metadata.namespace == namespace
                and each.metadata.deletion_timestamp is None
                and constraint.selects(each.metadata.labels)
                for each in node.pods.values()
            )

        return self._pods.get((namespace, constraint.selector), lambda: ByNode(count))

    def filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Rejections:
        domains: list[Domains] = state.get(self.name)
        known, labels = self._handle.nodes.get, pod.metadata.labels
        own = [each.constraint.selects(labels) for each in domains]
        refused: dict[str, PluginStatus] = {}
        for node in nodes:
            base = known(node.name)
            now = domains if base is node else [_as_if(pod, each, base, node) for each in domains]
            said = (each.refusal(node.node, selects_itself=mine) for each, mine in zip(now, own, strict=True))
            why = next((each for each in said if each is not None), None)
            if why is not None:
                refused[node.name] = why
        return refused

    def score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Sequence[int]:
        constraints = self._constraints(pod, SCHEDULE_ANYWAY)
        if not constraints:
            return [0] * len(nodes)
        # The defaults of Kubernetes hold also where nodes have no zones.
        lenient = self._defaults.system and not pod.spec.topology_spread_constraints
        scoring = SpreadScore(
            constraints,
            [self._counter(pod, each) for each in constraints],
            lambda constraint, node: counts_node(pod, constraint, node),
            lenient=lenient,
        )
        return scoring.of(nodes, self._handle.nodes.all())

    def interests(self) -> Sequence[Interest]:
        pods = Action.ADD | Action.UPDATE_POD_LABELS | Action.DELETE
        nodes = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABELS | Action.UPDATE_NODE_TAINTS
        return (
            on_bound_pod(pods, self._after_pod),
            on_the_pod(Action.UPDATE_POD_LABELS | Action.UPDATE_POD_TOLERATIONS),
            on_node(nodes, self._after_node),
        )

    def _after_pod(self, pod: Pod, old: Pod | None, new: Pod | None) -> Hint:
        if any(each is not None and each.metadata.namespace != pod.metadata.namespace for each in (old, new)):
            return Hint.SKIP
        constraints = self._constraints(pod, DO_NOT_SCHEDULE)
        if old is not None and new is not None:
            changed = (each.selects(old.metadata.labels) != each.selects(new.metadata.labels) for each in constraints)
            return queue_if(any(changed))
        one = new if new is not None else old
        return queue_if(one is not None and any(each.selects(one.metadata.labels) for each in constraints))

    def _after_node(self, pod: Pod, old: Node | None, new: Node | None) -> Hint:
        """A node that has all labels, or had them, changes who is compared with whom."""
        keys = [each.topology_key for each in self._constraints(pod, DO_NOT_SCHEDULE)]
        return queue_if(any(_has_all(each, keys) for each in (old, new) if each is not None))


def counts_node(pod: Pod, constraint: SpreadConstraint, node: Node) -> bool:
    """Whether a node has a part in the count, by the policies of the constraint."""
    if constraint.honors_affinity and not required_of(pod).matches(node):
        return False
    return not constraint.honors_taints or untolerated(node.spec.taints, pod.spec.tolerations) is None


def _as_if(pod: Pod, domains: Domains, base: NodeInfo | None, node: NodeInfo) -> Domains:
    return domains.with_node(base, node) if counts_node(pod, domains.constraint, node.node) else domains


def _has_all(node: Node, keys: Iterable[str]) -> bool:
    return all(key in node.metadata.labels for key in keys)
