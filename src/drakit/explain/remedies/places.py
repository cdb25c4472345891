"""Room for pods that wait: nodes that come, pods that go. Pure.

In:  a cluster, the pods that wait and their claims.
Out: changes, not yet tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

from drakit.allocator import MAX_RESULTS
from drakit.api import DeviceClass, Node, Pod, ResourceClaim
from drakit.api.footprint import pod_requests
from drakit.base.quantity import Quantity
from drakit.explain.cluster import ClusterObjects
from drakit.explain.nodekinds import NodeKind, enlarged, larger_amounts, new_nodes, node_kinds, template_kinds
from drakit.explain.remedies.proposals import Change, Proposal

_MAX_KINDS = 10


class NewNodes:
    """Nodes that could be added, for pods with these claims."""

    def __init__(self, cluster: ClusterObjects, pods: Sequence[Pod], claims: Sequence[ResourceClaim]) -> None:
        self._cluster = cluster
        needs = _needs(pods)
        # What a class provides for is taken of devices, not of the node.
        provided = {name for each in cluster.all(DeviceClass) if (name := each.spec.extended_resource_name)}
        self._room = {name: amount for name, amount in needs.items() if name not in provided}
        extended = sum(amount.value for name, amount in needs.items() if name in provided)
        self._copies = min(_wanted(claims) + extended, MAX_RESULTS)

    @cached_property
    def known(self) -> list[NodeKind]:
        """Kinds that the cluster has."""
        return node_kinds(self._cluster)[:_MAX_KINDS]

    @cached_property
    def offered(self) -> list[NodeKind]:
        """Kinds that the cluster need not have, the smallest first."""
        return sorted(template_kinds(self._cluster), key=lambda kind: (kind.devices, kind.name))

    def change(self, kind: NodeKind, number: int = 1) -> Change:
        return self._adding(kind, number, f"{_number(kind, number)} ({kind.devices} devices{_each(number)})")

    def larger(self, kind: NodeKind, number: int = 1) -> Change:
        """Nodes of a kind that have as many devices of each shape, and as much room, as all pods together need."""
        made = enlarged(kind, self._copies, self._room)
        more = [f"{self._copies} of each of its devices"] if kind.devices else []
        more += [f"{name} {amount}" for name, amount in larger_amounts(kind, self._room).items()]
        text = _number(kind, number) + (f", but with {' and '.join(more)}" if more else "")
        return self._adding(made, number, text)

    def _adding(self, kind: NodeKind, number: int, text: str) -> Change:
        taken = [node.metadata.name for node in self._cluster.all(Node)]
        return Change("node", text, _storing(new_nodes(kind, number, taken)))


def eviction(pods: Sequence[Pod], node: str) -> Change:
    names = ", ".join(f"{pod.metadata.namespace}/{pod.metadata.name}" for pod in pods)
    text = f"pod{'s' * (len(pods) != 1)} {names} gone from node {node}"
    return Change("pods", text, lambda proposal: proposal.evict(pods))


def _number(kind: NodeKind, number: int) -> str:
    nodes = "one more node" if number == 1 else f"{number} more nodes"
    return f"{nodes} {'of template' if kind.is_template else 'like'} {kind.name}"


def _each(number: int) -> str:
    return " each" if number > 1 else ""


def _storing(objects: Iterable[object]) -> Callable[[Proposal], None]:
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
    return sum(each or 1 for each in counts)


def _needs(pods: Sequence[Pod]) -> dict[str, Quantity]:
    """What the pods take of a node together."""
    total = {"pods": Quantity.of(len(pods))}
    for pod in pods:
        for name, amount in pod_requests(pod).items():
            if amount.sign > 0:
                total[name] = total[name] + amount if name in total else amount
    return total
