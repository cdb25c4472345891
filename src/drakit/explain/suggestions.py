"""What would make a pod fit. Every suggestion was tried with the scheduler's own plugins, and worked. Pure.

In:  a pod that fits nowhere.
Out: single changes that help: evictions, one more node, another request; where no single change helps, a set of
     changes of which each is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from drakit.allocator import MAX_RESULTS
from drakit.api import Node, Pod, ResourceClaim, to_wire
from drakit.explain.answers import Suggestion
from drakit.explain.changes import claim_changes, class_changes, node_changes, pod_changes, rule_changes
from drakit.explain.cluster import ClusterObjects
from drakit.explain.nodekinds import enlarged, new_nodes, node_kinds
from drakit.explain.proposals import Change, Proposal, proposed
from drakit.scheduler.rehearsal import Rehearsal, RehearsedPod

_MAX_NODES = 32
_MAX_TEMPLATES = 10
_MAX_PER_KIND = 3


class Trials:
    """One pod that does not fit, on one cluster."""

    def __init__(self, cluster: ClusterObjects, rehearsal: Rehearsal, checked: RehearsedPod) -> None:
        self._cluster = cluster
        self._rehearsal = rehearsal
        self._pod = checked.pod
        self._claims = _claims(cluster, checked)
        self._classes = _class_names(checked, self._claims)

    def suggestions(self) -> tuple[Suggestion, ...]:
        found = [*self._evictions(), *self._singles()]
        # Sets of changes are costly to try, and not needed where a single change helps.
        return tuple(found or self._together())

    # One change

    def _evictions(self) -> Iterator[Suggestion]:
        """Evictions that help: for each node a minimal set of pods, nodes with the smallest sets first."""
        found: list[tuple[int, str, list[Pod]]] = []
        for name, pods in self._crowded():
            # All pods of the node first: if that does not help, no subset of them does.
            if self._fits(self._without(pods)):
                kept = self._fewest(pods)
                found.append((len(kept), name, kept))
        for _, name, pods in sorted(found, key=lambda each: each[:2])[:_MAX_PER_KIND]:
            yield self._told([_eviction(pods, name)])

    def _crowded(self) -> list[tuple[str, list[Pod]]]:
        """Nodes with the pods on them, those with the fewest first."""
        nodes = ((info.name, [*info.pods.values()]) for info in self._rehearsal.nodes.all())
        known = [(name, [pod for pod in map(self._current, pods) if pod is not None]) for name, pods in nodes]
        return sorted((each for each in known if each[1]), key=lambda each: (len(each[1]), each[0]))[:_MAX_NODES]

    def _current(self, pod: Pod) -> Pod | None:
        return self._cluster.find(Pod, pod.metadata.name, pod.metadata.namespace)

    def _fewest(self, pods: Sequence[Pod]) -> list[Pod]:
        """A minimal set of pods to evict: keeping any one of them would not do. High priorities are kept first."""
        gone = list(pods)
        for each in sorted(pods, key=lambda pod: (-(pod.spec.priority or 0), pod.metadata.name)):
            rest = [pod for pod in gone if pod is not each]
            if self._fits(self._without(rest)):
                gone = rest
        return gone

    def _without(self, pods: Sequence[Pod]) -> Proposal:
        proposal = Proposal(self._cluster, self._pod)
        proposal.evict(pods)
        return proposal

    def _singles(self) -> Iterator[Suggestion]:
        seen: dict[str, int] = {}
        for change in chain(self._new_nodes(), self._mild(), self._strong()):
            # Counts come in falling order: the first that fits is the highest, and lower ones add nothing.
            limit = 1 if change.kind == "count" else _MAX_PER_KIND
            if seen.get(change.kind, 0) < limit and self._fits(proposed(self._cluster, self._pod, [change])):
                seen[change.kind] = seen.get(change.kind, 0) + 1
                yield self._told([change])

    def _new_nodes(self, *, copies: int = 0) -> Iterator[Change]:
        """One more node of each kind; with `copies`, one that has so many devices of each shape."""
        taken = [node.metadata.name for node in self._cluster.all(Node)]
        for template in node_kinds(self._cluster)[:_MAX_TEMPLATES]:
            made = enlarged(template, copies) if copies else template
            text = f"one more node like {template.name}"
            text += f", but with {copies} of each of its devices" if copies else f" ({template.devices} devices)"
            yield Change("node", text, _storing(new_nodes(made, 1, taken)))

    def _mild(self) -> Iterator[Change]:
        yield from pod_changes(self._cluster, self._pod)
        yield from node_changes(self._cluster)
        yield from rule_changes(self._cluster)

    def _strong(self) -> Iterator[Change]:
        for claim in self._claims:
            yield from claim_changes(self._cluster, self._rehearsal.inventory, claim)
        yield from class_changes(self._cluster, self._classes)

    # Several

    def _together(self) -> Iterator[Suggestion]:
        """One set of changes: all of them at once, then without those that turn out not to be needed."""
        loosened = [each for each in (*self._mild(), *self._loosest()) if each.kind != "alternative"]
        places: list[list[Change]] = [[], *([each] for each in self._new_nodes())]
        places += [[_eviction(pods, name)] for name, pods in self._crowded()]
        places += [[each] for each in self._new_nodes(copies=_wanted(self._claims))]
        for place in places:
            changes = [*place, *loosened]
            if self._fits(proposed(self._cluster, self._pod, changes)):
                yield self._told(self._needed(changes))
                return

    def _loosest(self) -> Iterator[Change]:
        """The changes of `_strong`, but of a request's counts only the lowest."""
        found = list(self._strong())
        counts = {each.text.split(" in request ")[-1]: each for each in found if each.kind == "count"}
        yield from (each for each in found if each.kind != "count")
        yield from counts.values()

    def _needed(self, changes: Sequence[Change]) -> list[Change]:
        """Drop changes that are not needed, beginning with the last ones, which are the strongest."""
        kept = list(changes)
        for each in reversed(changes):
            rest = [one for one in kept if one is not each]
            if self._fits(proposed(self._cluster, self._pod, rest)):
                kept = rest
        return kept

    # Trying

    def _fits(self, proposal: Proposal) -> bool:
        with self._rehearsal.supposing(proposal.put, proposal.gone):
            return self._rehearsal.check(proposal.pod).refusal is None

    def _told(self, changes: Sequence[Change]) -> Suggestion:
        proposal = proposed(self._cluster, self._pod, changes)
        kind = changes[0].kind if len(changes) == 1 else "several"
        put = tuple(to_wire(each) for each in proposal.put)
        return Suggestion(kind, "; and ".join(each.text for each in changes), put, proposal.names_gone)


def _storing(objects: Sequence[object]) -> Callable[[Proposal], None]:
    def apply(proposal: Proposal) -> None:
        for each in objects:
            proposal.store(each)

    return apply


def _wanted(claims: Sequence[ResourceClaim]) -> int:
    """How many devices the claims ask for, at least one for each request."""
    requests = [request for claim in claims for request in claim.spec.devices.requests]
    counts = (
        each.exactly.count if each.exactly else max(sub.count or 1 for sub in each.first_available) for each in requests
    )
    return min(sum(each or 1 for each in counts), MAX_RESULTS)


def _eviction(pods: Sequence[Pod], node: str) -> Change:
    names = ", ".join(f"{pod.metadata.namespace}/{pod.metadata.name}" for pod in pods)
    text = f"pod{'s' * (len(pods) != 1)} {names} gone from node {node}"
    return Change("pods", text, lambda proposal: proposal.evict(pods))


def _claims(cluster: ClusterObjects, checked: RehearsedPod) -> list[ResourceClaim]:
    """The pod's unallocated claims, which can be changed; not those that the scheduler makes itself."""
    names = {(each.metadata.namespace, each.metadata.name) for claims, _ in checked.asked for each in claims}
    for entry in checked.pod.spec.resource_claims if not names else ():
        named = {each.name: each.resource_claim_name for each in checked.pod.status.resource_claim_statuses}
        names.add((checked.pod.metadata.namespace, entry.resource_claim_name or named.get(entry.name) or ""))
    found = (cluster.find(ResourceClaim, name, namespace) for namespace, name in sorted(names))
    return [each for each in found if each is not None and each.status.allocation is None]


def _class_names(checked: RehearsedPod, claims: Sequence[ResourceClaim]) -> list[str]:
    asked = [claim for group, _ in checked.asked for claim in group]
    requests = [request for claim in (*claims, *asked) for request in claim.spec.devices.requests]
    return [
        *(each.exactly.device_class_name for each in requests if each.exactly),
        *(sub.device_class_name for each in requests for sub in each.first_available),
    ]
