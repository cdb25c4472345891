"""What would make pods fit. Every suggestion was tried with the scheduler's own plugins, and worked. Pure.

In:  a pod that fits nowhere, or the waiting pods of a gang of which too few fit.
Out: single changes that help: evictions, more nodes, another request; where no single change helps, a set of changes
     of which each is needed; where nothing helps, the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice

from drakit.api import Pod, ResourceClaim, to_wire
from drakit.explain.answers import Suggestion
from drakit.explain.cluster import ClusterObjects
from drakit.explain.gangs import gang_of, members_of, place_gang
from drakit.explain.nodekinds import NodeKind
from drakit.explain.remedies.claimchanges import claim_changes, equal_claims
from drakit.explain.remedies.places import NewNodes, eviction
from drakit.explain.remedies.proposals import Change, Proposal, proposed
from drakit.explain.remedies.surroundings import (
    class_changes,
    freed_claims,
    group_changes,
    node_changes,
    pod_changes,
    rule_changes,
)
from drakit.scheduler.podgroups.groups import least
from drakit.scheduler.rehearsal import Rehearsal, RehearsedPod

_MAX_NODES = 32
_MAX_PER_KIND = 3
_FALLING = ("count", "min-count")
"""These come in falling order: the first that fits is the highest, and lower ones add nothing."""
_BARRIERS = ("class", "gate", "group")
"""Without these nothing else can help."""


class Trials:
    """Pods that do not fit, on one cluster: one, or those of a gang that wait."""

    def __init__(self, cluster: ClusterObjects, rehearsal: Rehearsal, pods: Sequence[Pod]) -> None:
        self._cluster = cluster
        self._rehearsal = rehearsal
        self._pods = pods
        checked = [rehearsal.check(pod) for pod in pods]
        self._claims = list({id(each): each for one in checked for each in _claims(cluster, one)}.values())
        self._classes = [name for one in checked for name in _class_names(one, self._claims)]
        self._nodes = NewNodes(cluster, pods, self._claims)

    def suggestions(self) -> tuple[Suggestion, ...]:
        found = [*self._evictions(), *self._singles()]
        # Nodes of kinds that the cluster does not have, and sets of changes, are only for where nothing else helps.
        return tuple(found or self._offered_nodes() or self._together())

    def refused(self) -> tuple[Pod, str]:
        """A pod that does not fit even if everything is changed that can be, and what the scheduler says of it."""
        kinds = [*self._nodes.known, *self._nodes.offered][:1]
        proposal = self._proposed([*(self._nodes.larger(kind) for kind in kinds), *self._loosest()])
        with self._rehearsal.supposing(proposal.put, proposal.gone):
            for pod in proposal.pods:
                refusal = self._rehearsal.check(pod).refusal
                if refusal is not None:
                    return pod, refusal.message
        return self._pods[0], "not all pods of its gang fit"

    # One change

    def _evictions(self) -> Iterator[Suggestion]:
        """Evictions that help: for each node a minimal set of pods, nodes with the smallest sets first."""
        found: list[tuple[int, str, list[Pod]]] = []
        for name, pods in self._crowded():
            # All pods of the node first: if that does not help, no subset of them does.
            if self._fits([eviction(pods, name)]):
                kept = self._fewest(pods, name)
                found.append((len(kept), name, kept))
        for _, name, pods in sorted(found, key=lambda each: each[:2])[:_MAX_PER_KIND]:
            yield self._told([eviction(pods, name)])

    def _crowded(self) -> list[tuple[str, list[Pod]]]:
        """Nodes with the pods on them, those with the fewest first."""
        nodes = ((info.name, [*info.pods.values()]) for info in self._rehearsal.nodes.all())
        known = [(name, [pod for pod in map(self._current, pods) if pod is not None]) for name, pods in nodes]
        return sorted((each for each in known if each[1]), key=lambda each: (len(each[1]), each[0]))[:_MAX_NODES]

    def _current(self, pod: Pod) -> Pod | None:
        return self._cluster.find(Pod, pod.metadata.name, pod.metadata.namespace)

    def _fewest(self, pods: Sequence[Pod], node: str) -> list[Pod]:
        """A minimal set of pods to evict: keeping any one of them would not do. High priorities are kept first."""
        gone = list(pods)
        for each in sorted(pods, key=lambda pod: (-(pod.spec.priority or 0), pod.metadata.name)):
            rest = [pod for pod in gone if pod is not each]
            if self._fits([eviction(rest, node)]):
                gone = rest
        return gone

    def _singles(self) -> Iterator[Suggestion]:
        new = (change for kind in self._nodes.known if (change := self._fewest_nodes(kind, self._nodes.change)))
        yield from self._helping(chain(new, self._mild(), self._strong()))

    def _offered_nodes(self) -> list[Suggestion]:
        kinds = self._nodes.offered
        new = (change for kind in kinds if (change := self._fewest_nodes(kind, self._nodes.change)))
        return list(self._helping(new))

    def _helping(self, changes: Iterable[Change]) -> Iterator[Suggestion]:
        """Those changes that help by themselves, a few of each kind."""
        seen: dict[str, int] = {}
        for change in changes:
            limit = 1 if change.kind in _FALLING else _MAX_PER_KIND
            if seen.get(change.kind, 0) < limit and self._fits([change]):
                seen[change.kind] = seen.get(change.kind, 0) + 1
                yield self._told([change])

    def _fewest_nodes(self, kind: NodeKind, make: Callable[[NodeKind, int], Change]) -> Change | None:
        """The fewest nodes of a kind that help; None where a node for each pod does not."""
        low, high = 1, len(self._pods)
        if not self._fits([make(kind, high)]):
            return None
        # Bisection, which takes for granted that one node more never makes fewer pods fit.
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._fits([make(kind, middle)]) else (middle + 1, high)
        return make(kind, high)

    def _mild(self) -> Iterator[Change]:
        yield from pod_changes(self._cluster, self._pods)
        yield from node_changes(self._cluster)
        yield from rule_changes(self._cluster)
        yield from freed_claims(self._cluster, self._pods)
        yield from group_changes(self._cluster, self._pods)

    def _strong(self) -> Iterator[Change]:
        for claims in equal_claims(self._claims):
            yield from claim_changes(self._cluster, self._rehearsal.inventory, claims)
        yield from class_changes(self._cluster, self._classes)

    # Several

    def _together(self) -> Iterator[Suggestion]:
        """Sets of changes: all of them at once, then without those that turn out not to be needed.

        A few where only what nothing can do without is changed beside the place; else one.
        """
        loosest = list(self._loosest())
        barriers = [each for each in loosest if each.kind in _BARRIERS]
        places = list(self._places())
        for loosened, most in ((barriers, _MAX_PER_KIND), (loosest, 1)):
            helping = ([*place, *loosened] for place in places if self._fits([*place, *loosened]))
            found = {one.text: one for changes in islice(helping, most) for one in [self._told(self._needed(changes))]}
            if found:
                yield from found.values()
                return

    def _places(self) -> Iterator[list[Change]]:
        """Where the pods could go, if all else were as they need it: the least effort first."""
        known, offered, number = self._nodes.known, self._nodes.offered, len(self._pods)
        yield []
        yield from ([self._nodes.change(kind, number)] for kind in known)
        yield from ([eviction(pods, name)] for name, pods in self._crowded())
        yield from ([self._nodes.change(kind, number)] for kind in offered)
        yield from ([self._nodes.larger(kind)] for kind in (*known, *offered))

    def _loosest(self) -> Iterator[Change]:
        """All changes but nodes; of counts only the lowest."""
        found = [each for each in (*self._mild(), *self._strong()) if each.kind != "alternative"]
        counts = {(each.kind, each.text.partition(" in ")[2]): each for each in found if each.kind in _FALLING}
        yield from (each for each in found if each.kind not in _FALLING)
        yield from counts.values()

    def _needed(self, changes: Sequence[Change]) -> list[Change]:
        """Drop changes that are not needed, beginning with the last ones, which are the strongest."""
        kept = list(changes)
        for each in reversed(changes):
            rest = [one for one in kept if one is not each]
            if self._fits(rest):
                kept = rest
        return kept

    # Trying

    def _fits(self, changes: Sequence[Change]) -> bool:
        proposal = self._proposed(changes)
        with self._rehearsal.supposing(proposal.put, proposal.gone):
            group = gang_of(proposal.find, proposal.pods[0])
            if group is None:
                return all(self._rehearsal.check(pod).refusal is None for pod in proposal.pods)
            running = sum(bool(each.spec.node_name) for each in members_of(self._rehearsal.all(Pod), group))
            return place_gang(self._rehearsal, proposal.pods, least(group) - running, undo=True).is_enough

    def _proposed(self, changes: Sequence[Change]) -> Proposal:
        return proposed(self._cluster, self._pods, changes)

    def _told(self, changes: Sequence[Change]) -> Suggestion:
        proposal = self._proposed(changes)
        kind = changes[0].kind if len(changes) == 1 else "several"
        put = tuple(to_wire(each) for each in proposal.put)
        return Suggestion(kind, "; and ".join(each.text for each in changes), put, proposal.names_gone)


def _claims(cluster: ClusterObjects, checked: RehearsedPod) -> list[ResourceClaim]:
    """The pod's unallocated claims, which can be changed; not those that the scheduler makes itself."""
    names = {(each.metadata.namespace, each.metadata.name) for claims, _ in checked.asked for each in claims}
    for entry in checked.pod.spec.resource_claims if not names else ():
        named = {each.name: each.resource_claim_name for each in checked.pod.status.resource_claim_statuses}
        names.add((checked.pod.metadata.namespace, entry.resource_claim_name or named.get(entry.name) or ""))
    found = (cluster.find(ResourceClaim, name, namespace) for namespace, name in sorted(names))
    return [each for each in found if each is not None and each.status.allocation is None]


def _asked(checked: RehearsedPod) -> list[ResourceClaim]:
    return [claim for group, _ in checked.asked for claim in group]


def _class_names(checked: RehearsedPod, claims: Sequence[ResourceClaim]) -> list[str]:
    requests = [request for claim in (*claims, *_asked(checked)) for request in claim.spec.devices.requests]
    return [
        *(each.exactly.device_class_name for each in requests if each.exactly),
        *(sub.device_class_name for each in requests for sub in each.first_available),
    ]
