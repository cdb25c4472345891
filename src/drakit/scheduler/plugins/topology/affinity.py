"""InterPodAffinity: pods that want to be near others, or far from them; and others that want to be far from this one.

In:  a pod, the nodes and the pods on them.
Out: nodes that a required term forbids; scores by preferred terms, also those of pods that are there already.

A pod without terms costs nothing while no pod on a node has terms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from drakit.api.objects.pods import Pod
from drakit.base.labels import LabelMatcher
from drakit.client import NAMESPACES, Key
from drakit.scheduler.config.args import InterPodAffinityArgs
from drakit.scheduler.config.names import INTER_POD_AFFINITY
from drakit.scheduler.framework import SKIP, SUCCESS, CycleState, Handle, Interest, NodeInfo, PluginStatus, Rejections
from drakit.scheduler.plugins.noderesults import RecentResults
from drakit.scheduler.plugins.normalization import MOST
from drakit.scheduler.plugins.topology.affinityhints import affinity_interests
from drakit.scheduler.plugins.topology.counts import NONE, ByNode, Pair, Sums, add, tally
from drakit.scheduler.plugins.topology.terms import PodTerms, Terms, has_terms, terms_of

Labels = Mapping[str, str]

_NOT_NEAR = PluginStatus.unresolvable("node(s) didn't match pod affinity rules")
_NOT_FAR = PluginStatus.unschedulable("node(s) didn't match pod anti-affinity rules")
_KEPT_AWAY = PluginStatus.unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")


class NodeTally(NamedTuple):
    """What the pods of a node come to: near and far for the pod's own terms, repelling for theirs."""

    near: Mapping[Pair, int]
    far: Mapping[Pair, int]
    repelling: Mapping[Pair, int]


class Attempt(NamedTuple):
    """The sums over all nodes, and what they are made of."""

    terms: PodTerms
    tallies: ByNode[NodeTally]
    near: Sums
    far: Sums
    repelling: Sums
    first: bool
    """Whether the pod satisfies its own affinity: it may be the first of its kind."""

    def with_node(self, before: NodeInfo | None, now: NodeInfo) -> Attempt:
        """As if one node was another: without pods that preemption would evict, with those that are nominated."""
        near, far, repelling = dict(self.near), dict(self.far), dict(self.repelling)
        for node, sign in ((before, -1), (now, 1)):
            if node is not None:
                for total, more in zip((near, far, repelling), self.tallies.of(node), strict=True):
                    add(total, more, sign)
        return self._replace(near=near, far=far, repelling=repelling)

    def refusal(self, node: NodeInfo) -> PluginStatus | None:
        labels = node.node.metadata.labels
        if self.terms.required and not self._is_near(labels):
            return _NOT_NEAR
        keys = (each.topology_key for each in self.terms.required_anti)
        if self.far and any(self.far.get((key, labels[key])) for key in keys if key in labels):
            return _NOT_FAR
        if self.repelling and any(self.repelling.get(pair) for pair in labels.items()):
            return _KEPT_AWAY
        return None

    def _is_near(self, labels: Labels) -> bool:
        keys = [each.topology_key for each in self.terms.required]
        if any(key not in labels for key in keys):
            return False
        if all(self.near.get((key, labels[key])) for key in keys):
            return True
        return not self.near and self.first


class InterPodAffinity:
    name = INTER_POD_AFFINITY

    def __init__(self, handle: Handle, args: InterPodAffinityArgs | None = None) -> None:
        self._handle = handle
        self._args = args or InterPodAffinityArgs()
        self._namespaces = handle.informers.of(NAMESPACES)
        self._tallies: RecentResults[ByNode[NodeTally]] = RecentResults()
        self._scores: RecentResults[ByNode[Mapping[Pair, int]]] = RecentResults()

    def interests(self) -> Sequence[Interest]:
        return affinity_interests(self._labels_of)

    def pre_filter(self, state: CycleState, pod: Pod) -> tuple[PluginStatus, frozenset[str] | None]:
        # Neither this pod nor any other says anything of pods: most clusters, most of the time.
        if not has_terms(pod) and not self._handle.nodes.affine:
            state.skip_score.add(self.name)
            return SKIP, None
        terms = terms_of(pod).resolved(self._names_matching)
        if not terms.prefers and not self._handle.nodes.affine:
            state.skip_score.add(self.name)
        attempt = self._begin(pod, terms)
        state.put(self.name, attempt)
        return (SUCCESS if terms.demands or attempt.repelling else SKIP), None

    def _begin(self, pod: Pod, terms: PodTerms) -> Attempt:
        namespace, labels, told = pod.metadata.namespace, pod.metadata.labels, self._labels_of(pod.metadata.namespace)
        question = (terms.required, terms.required_anti, namespace, _pairs(labels), _pairs(told))
        tallies = self._tallies.get(question, lambda: ByNode(lambda node: _tally(node, terms, namespace, labels, told)))
        near, far, repelling = Sums(), Sums(), Sums()
        nodes = self._handle.nodes.all() if terms.demands else self._affine()
        for node in nodes:
            found = tallies.of(node)
            for total, more in zip((near, far, repelling), found, strict=True):
                if more:
                    add(total, more)
        first = bool(terms.required) and all(each.matches(namespace, labels, told) for each in terms.required)
        return Attempt(terms, tallies, near, far, repelling, first)

    def filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Rejections:
        attempt: Attempt = state.get(self.name)
        known = self._handle.nodes.get
        refused: dict[str, PluginStatus] = {}
        for node in nodes:
            base = known(node.name)
            now = attempt if base is node else attempt.with_node(base, node)
            if (why := now.refusal(node)) is not None:
                refused[node.name] = why
        return refused

    def score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Sequence[int]:
        terms = terms_of(pod).resolved(self._names_matching)
        namespace, labels, told = pod.metadata.namespace, pod.metadata.labels, self._labels_of(pod.metadata.namespace)
        hard, ignore = self._args.hard_pod_affinity_weight, self._args.ignore_preferred_terms_of_existing_pods
        if ignore and not terms.prefers:
            return [0] * len(nodes)
        question = (terms.preferred, terms.preferred_anti, namespace, _pairs(labels), _pairs(told))
        liking = self._scores.get(
            question, lambda: ByNode(lambda node: _liking(node, terms, namespace, labels, told, hard))
        )
        sums = Sums()
        for node in self._handle.nodes.all() if terms.prefers else self._affine():
            add(sums, liking.of(node))
        return _spread([_sum(sums, each.node.metadata.labels) for each in nodes])

    def _affine(self) -> Iterator[NodeInfo]:
        """The nodes with pods that say something of others."""
        for name in self._handle.nodes.affine:
            node = self._handle.nodes.get(name)
            if node is not None:
                yield node

    def _labels_of(self, namespace: str) -> Labels:
        found = self._namespaces.cache.get(Key("", namespace))
        return found.view.metadata.labels if found is not None else {}

    def _names_matching(self, matcher: LabelMatcher) -> frozenset[str]:
        views = (each.view.metadata for each in self._namespaces.cache)
        return frozenset(each.name for each in views if matcher.matches(each.labels))


def _pairs(labels: Labels) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items()))


def _tally(node: NodeInfo, terms: PodTerms, namespace: str, labels: Labels, told: Labels) -> NodeTally:
    near: list[tuple[str, int]] = []
    far: list[tuple[str, int]] = []
    repelling: list[tuple[str, int]] = []
    for each in node.pods.values():
        meta = each.metadata
        # What the pod's own terms select by the labels of a namespace was resolved to names: they need none here.
        if terms.required and all(term.matches(meta.namespace, meta.labels, {}) for term in terms.required):
            near += [(term.topology_key, 1) for term in terms.required]
        far += [(term.topology_key, 1) for term in terms.required_anti if term.matches(meta.namespace, meta.labels, {})]
        if has_terms(each):
            theirs = terms_of(each).required_anti
            repelling += [(term.topology_key, 1) for term in theirs if term.matches(namespace, labels, told)]
    return NodeTally(*(tally(node, found) if found else NONE for found in (near, far, repelling)))


def _liking(
    node: NodeInfo, terms: PodTerms, namespace: str, labels: Labels, told: Labels, hard: int
) -> Mapping[Pair, int]:
    """What preferred terms make of a node: this pod's by those that are there, theirs by this pod."""
    found: list[tuple[str, int]] = []
    for each in node.pods.values():
        meta = each.metadata
        if terms.prefers:
            found += _weights(terms.preferred, meta.namespace, meta.labels, {}, 1)
            found += _weights(terms.preferred_anti, meta.namespace, meta.labels, {}, -1)
        if has_terms(each):
            theirs = terms_of(each)
            if hard:
                found += [(key, hard) for key, _ in _weights(theirs.required, namespace, labels, told, 1)]
            found += _weights(theirs.preferred, namespace, labels, told, 1)
            found += _weights(theirs.preferred_anti, namespace, labels, told, -1)
    return tally(node, found)


def _weights(terms: Terms, namespace: str, labels: Labels, told: Labels, sign: int) -> list[tuple[str, int]]:
    return [(term.topology_key, sign * term.weight) for term in terms if term.matches(namespace, labels, told)]


def _sum(sums: Sums, labels: Labels) -> int:
    return sum(sums[pair] for pair in labels.items() if pair in sums)


def _spread(scores: list[int]) -> list[int]:
    """From 0 for the least to 100 for the most; nothing when all are equal."""
    least, most = min(scores), max(scores)
    if least == most:
        return [0] * len(scores)
    return [int(MOST * ((score - least) / (most - least))) for score in scores]
