"""What a pod says of other pods: terms of affinity and constraints of spread, in a form that can be asked.

In:  a pod.
Out: hashable terms: pods of one template have equal ones, so what was found out for one serves all.

`matchLabelKeys` and `mismatchLabelKeys` are read here: they stand for the pod's own values of these labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from drakit.api.objects.pods import Pod, PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from drakit.base.labels import LabelMatcher, LabelSelector, Requirement, from_struct

HONOR = "Honor"
DO_NOT_SCHEDULE = "DoNotSchedule"
SCHEDULE_ANYWAY = "ScheduleAnyway"

Labels = Mapping[str, str]
NamespacesMatching = Callable[[LabelMatcher], frozenset[str]]


class AffinityTerm(msgspec.Struct, frozen=True):
    """`namespaces` and `by_labels` (None: no namespace) say together where the pods are that `selector` selects.

    No selector selects no pod.
    """

    topology_key: str
    namespaces: frozenset[str]
    by_labels: LabelMatcher | None
    selector: LabelMatcher | None
    weight: int = 0

    def matches(self, namespace: str, labels: Labels, namespace_labels: Labels) -> bool:
        if self.selector is None or not self.selector.matches(labels):
            return False
        if namespace in self.namespaces:
            return True
        return self.by_labels is not None and self.by_labels.matches(namespace_labels)

    def resolved(self, matching: NamespacesMatching) -> AffinityTerm:
        """The same with namespaces by name; one that selects all namespaces stays as it is."""
        if self.by_labels is None or not self.by_labels.requirements:
            return self
        return msgspec.structs.replace(self, namespaces=self.namespaces | matching(self.by_labels), by_labels=None)


Terms = tuple[AffinityTerm, ...]


class PodTerms(msgspec.Struct, frozen=True):
    required: Terms = ()
    required_anti: Terms = ()
    preferred: Terms = ()
    preferred_anti: Terms = ()

    @property
    def demands(self) -> bool:
        return bool(self.required or self.required_anti)

    @property
    def prefers(self) -> bool:
        return bool(self.preferred or self.preferred_anti)

    def resolved(self, matching: NamespacesMatching) -> PodTerms:
        return PodTerms(*(tuple(each.resolved(matching) for each in terms) for terms in msgspec.structs.astuple(self)))


NO_TERMS = PodTerms()


def has_terms(pod: Pod) -> bool:
    """Whether the pod says anything of other pods. Cheap: it is asked of every pod."""
    affinity = pod.spec.affinity
    return affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None)


def terms_of(pod: Pod) -> PodTerms:
    affinity = pod.spec.affinity
    if affinity is None or not has_terms(pod):
        return NO_TERMS
    near, far = affinity.pod_affinity or _NOTHING, affinity.pod_anti_affinity or _NOTHING
    return PodTerms(
        _required(pod, near),
        _required(pod, far),
        _preferred(pod, near),
        _preferred(pod, far),
    )


_NOTHING = PodAffinity()


def _required(pod: Pod, said: PodAffinity) -> Terms:
    return tuple(_term(pod, each) for each in said.required_during_scheduling_ignored_during_execution)


def _preferred(pod: Pod, said: PodAffinity) -> Terms:
    weighted = said.preferred_during_scheduling_ignored_during_execution
    return tuple(_term(pod, each.pod_affinity_term, each.weight) for each in weighted)


def _term(pod: Pod, said: PodAffinityTerm, weight: int = 0) -> AffinityTerm:
    by_labels = None if said.namespace_selector is None else from_struct(said.namespace_selector)
    namespaces = frozenset(said.namespaces)
    if not namespaces and by_labels is None:
        namespaces = frozenset((pod.metadata.namespace,))
    labels = pod.metadata.labels
    own = [Requirement(key, "in", (labels[key],)) for key in said.match_label_keys if key in labels]
    own += [Requirement(key, "notin", (labels[key],)) for key in said.mismatch_label_keys if key in labels]
    return AffinityTerm(said.topology_key, namespaces, by_labels, _matcher(said.label_selector, own), weight)


def _matcher(selector: LabelSelector | None, own: Sequence[Requirement]) -> LabelMatcher | None:
    if selector is None:
        return None
    made = from_struct(selector)
    if not own:
        return made
    return LabelMatcher((*made.requirements, *(each for each in own if each not in made.requirements)))


class SpreadConstraint(msgspec.Struct, frozen=True):
    """One constraint, with its defaults. No selector selects no pod."""

    max_skew: int
    topology_key: str
    selector: LabelMatcher | None
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False

    def selects(self, labels: Labels) -> bool:
        return self.selector is not None and self.selector.matches(labels)


Constraints = tuple[SpreadConstraint, ...]


def constraints_of(pod: Pod, when_unsatisfiable: str) -> Constraints:
    return tuple(
        _constraint(pod, each)
        for each in pod.spec.topology_spread_constraints
        if each.when_unsatisfiable == when_unsatisfiable
    )


def _constraint(pod: Pod, said: TopologySpreadConstraint) -> SpreadConstraint:
    labels = pod.metadata.labels
    own = [Requirement(key, "in", (labels[key],)) for key in said.match_label_keys if key in labels]
    return SpreadConstraint(
        said.max_skew,
        said.topology_key,
        _matcher(said.label_selector, own),
        said.min_domains or 1,
        said.node_affinity_policy in (None, HONOR),
        said.node_taints_policy == HONOR,
    )
