"""NodeAffinity: `nodeSelector` and required terms that a node must match, preferred terms that raise its score.

A profile may add terms of its own (`addedAffinity`), which hold for all its pods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from drakit.api.objects.cluster import Node
from drakit.api.objects.pods import NodeAffinity as Terms
from drakit.api.objects.pods import Pod, PreferredSchedulingTerm
from drakit.base.nodeselectors import IN, NAME_FIELD, NodeSelector, NodeSelectorTerm, matches, matches_term
from drakit.scheduler.config.args import NodeAffinityArgs
from drakit.scheduler.config.names import NODE_AFFINITY
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
from drakit.scheduler.plugins.interests import on_node, queue_if
from drakit.scheduler.plugins.noderesults import FilterResults, RecentResults, Scores
from drakit.scheduler.plugins.normalization import normalize

_UNMATCHED = PluginStatus.unresolvable("node(s) didn't match Pod's node affinity/selector")
_UNMATCHED_ADDED = PluginStatus.unresolvable("node(s) didn't match scheduler-enforced node affinity")
_CONFLICT = PluginStatus.unresolvable("pod affinity terms conflict")


class Required(msgspec.Struct, frozen=True):
    """What a pod requires of a node. Without a selector every node matches; a selector without terms matches none."""

    labels: tuple[tuple[str, str], ...]
    selector: NodeSelector | None

    def matches(self, node: Node) -> bool:
        labels = node.metadata.labels
        return all(labels.get(key) == value for key, value in self.labels) and _selects(self.selector, node)


class NodeAffinityPlugin:
    name = NODE_AFFINITY

    def __init__(self, args: NodeAffinityArgs | None = None) -> None:
        added = (args.added_affinity if args else None) or Terms()
        self._added = added.required_during_scheduling_ignored_during_execution
        self._added_preferred = added.preferred_during_scheduling_ignored_during_execution
        self._results: RecentResults[FilterResults] = RecentResults()
        self._scores: RecentResults[Scores] = RecentResults()

    def pre_filter(self, state: CycleState, pod: Pod) -> tuple[PluginStatus, frozenset[str] | None]:
        if not self._preferred(pod):
            state.skip_score.add(self.name)
        required = required_of(pod)
        if required.selector is None and not required.labels and self._added is None:
            return SKIP, None
        names = _names(required.selector) if required.selector else None
        if names is not None and not names:
            return _CONFLICT, None
        return SUCCESS, names

    def filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Rejections:
        required = required_of(pod)
        return self._results.get(required, lambda: FilterResults(lambda node: self._check(required, node))).rejections(
            nodes
        )

    def _check(self, required: Required, node: NodeInfo) -> PluginStatus | None:
        if not _selects(self._added, node.node):
            return _UNMATCHED_ADDED
        return None if required.matches(node.node) else _UNMATCHED

    def score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Sequence[int]:
        preferred = self._preferred(pod)
        scores = self._scores.get(preferred, lambda: Scores(lambda node: _liked(preferred, node.node)))
        return normalize(scores.of(nodes))

    def _preferred(self, pod: Pod) -> tuple[PreferredSchedulingTerm, ...]:
        own = _terms(pod).preferred_during_scheduling_ignored_during_execution
        return self._added_preferred + own

    def interests(self) -> Sequence[Interest]:
        return (on_node(Action.ADD | Action.UPDATE_NODE_LABELS, self._after_node),)

    def _after_node(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        required = required_of(pod)
        if not _selects(self._added, new) or not required.matches(new):
            return Hint.SKIP
        return queue_if(old is None or not _selects(self._added, old) or not required.matches(old))


def required_of(pod: Pod) -> Required:
    selector = _terms(pod).required_during_scheduling_ignored_during_execution
    return Required(_pairs(pod.spec.node_selector), selector)


_NO_TERMS = Terms()


def _terms(pod: Pod) -> Terms:
    affinity = pod.spec.affinity
    return (affinity.node_affinity if affinity else None) or _NO_TERMS


def _pairs(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items())) if labels else ()


def _selects(selector: NodeSelector | None, node: Node) -> bool:
    return selector is None or matches(selector, name=node.metadata.name, labels=node.metadata.labels)


def _liked(preferred: Sequence[PreferredSchedulingTerm], node: Node) -> int:
    """The weights of the terms that the node matches."""
    name, labels = node.metadata.name, node.metadata.labels
    return sum(each.weight for each in preferred if matches_term(each.preference, name=name, labels=labels))


def _names(selector: NodeSelector) -> frozenset[str] | None:
    """The only nodes that can match, if every term names its nodes by metadata.name; else None."""
    found: frozenset[str] = frozenset()
    for term in selector.node_selector_terms:
        named = _named(term)
        if named is None:
            return None
        found |= named
    return found if selector.node_selector_terms else None


def _named(term: NodeSelectorTerm) -> frozenset[str] | None:
    sets = [frozenset(each.values) for each in term.match_fields if each.key == NAME_FIELD and each.operator == IN]
    return frozenset.intersection(*sets) if sets else None
