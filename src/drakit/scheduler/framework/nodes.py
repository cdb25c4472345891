"""A node with the pods on it, and the ledger of what they take.

In:  a Node and pods, bound or assumed.
Out: immutable `NodeInfo`s: adding or removing a pod gives another one, so a snapshot and a what-if cost a reference,
     and what was worked out for one stays true.

Amounts are integers: cpu in thousandths, everything else in units, both rounded up.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from typing import Protocol

from drakit.api.objects.cluster import Node
from drakit.api.objects.pods import Pod
from drakit.scheduler.framework.footprints import CPU, MEMORY, PODS, Amounts, Footprint, Port, footprint_of, units

__all__ = [
    "CPU",
    "MEMORY",
    "PODS",
    "Amounts",
    "NodeInfo",
    "Nodes",
    "Port",
    "nonzero_of",
    "ports_of",
    "requests_of",
    "units",
]

_NOTHING: Amounts = {}


class NodeInfo:
    """Invariant: `requested`, `nonzero` and `ports` are the sums over `pods`. Two are equal only if they are one."""

    __slots__ = ("allocatable", "name", "node", "nonzero", "pods", "ports", "requested")

    def __init__(
        self,
        node: Node,
        pods: Mapping[str, Pod] | None = None,
        *,
        allocatable: Amounts | None = None,
        requested: Amounts = _NOTHING,
        nonzero: Amounts = _NOTHING,
        ports: frozenset[Port] = frozenset(),
    ) -> None:
        """Given pods come with their sums; see `with_pod` for one more."""
        self.node = node
        self.name = node.metadata.name
        self.pods: Mapping[str, Pod] = pods if pods is not None else {}
        self.allocatable = allocatable if allocatable is not None else units(node.status.allocatable)
        self.requested = requested
        self.nonzero = nonzero
        self.ports = ports

    def with_pod(self, pod: Pod) -> NodeInfo:
        """With one more pod; one of the same uid is replaced."""
        before = self.pods.get(pod.metadata.uid)
        pods = {**self.pods, pod.metadata.uid: pod}
        size = footprint_of(pod)
        if before is None:
            return self._with(pods, size, 1)
        # Only its status changed: the sums stay as they are.
        if footprint_of(before) is size:
            return self._changed(pods, self.requested, self.nonzero, self.ports)
        return self.without_pod(pod.metadata.uid)._with(pods, size, 1)

    def without_pod(self, uid: str) -> NodeInfo:
        """Without the pod of that uid; the same when it is not there."""
        pod = self.pods.get(uid)
        if pod is None:
            return self
        rest = dict(self.pods)
        del rest[uid]
        return self._with(rest, footprint_of(pod), -1)

    def with_node(self, node: Node) -> NodeInfo:
        """The same pods on a node that changed."""
        same = node.status.allocatable == self.node.status.allocatable
        return NodeInfo(
            node,
            self.pods,
            allocatable=self.allocatable if same else None,
            requested=self.requested,
            nonzero=self.nonzero,
            ports=self.ports,
        )

    def _with(self, pods: Mapping[str, Pod], size: Footprint, sign: int) -> NodeInfo:
        ports = self.ports
        if size.ports and sign > 0:
            ports |= size.ports
        elif size.ports:  # what goes may have shared a port with what stays
            ports = frozenset(port for each in pods.values() for port in footprint_of(each).ports)
        return self._changed(
            pods, _plus(self.requested, size.requested, sign), _plus(self.nonzero, size.nonzero, sign), ports
        )

    def _changed(
        self, pods: Mapping[str, Pod], requested: Amounts, nonzero: Amounts, ports: frozenset[Port]
    ) -> NodeInfo:
        return NodeInfo(
            self.node, pods, allocatable=self.allocatable, requested=requested, nonzero=nonzero, ports=ports
        )


class Nodes(Protocol):
    """The nodes as they are in this cycle. Nothing changes while a cycle runs: it never gives up control."""

    @property
    def affine(self) -> Mapping[str, int]:
        """Nodes with pods that say something of other pods (affinity or anti-affinity), each with their number."""
        ...

    @property
    def tainted(self) -> Collection[str]:
        """The names of nodes with taints."""
        ...

    @property
    def cordoned(self) -> Collection[str]:
        """The names of nodes that are marked unschedulable."""
        ...

    @property
    def advertised(self) -> Container[str]:
        """The extended resources of which some node itself has more than none."""
        ...

    def get(self, name: str) -> NodeInfo | None: ...

    def all(self) -> list[NodeInfo]:
        """In the order in which they are searched."""
        ...

    def placed(self) -> Iterable[Pod]:
        """All pods that are on a node, bound or assumed; those included whose node is gone, and who may run there."""
        ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[NodeInfo]: ...


def requests_of(pod: Pod) -> Amounts:
    """What a pod takes of a node: with claims of node resources, overhead, and what a resize in progress may take."""
    return footprint_of(pod).requested


def nonzero_of(pod: Pod) -> Amounts:
    """cpu and memory of a pod for comparing nodes: a container that names neither counts a little all the same."""
    return footprint_of(pod).nonzero


def ports_of(pod: Pod) -> frozenset[Port]:
    """The ports of the host that a pod takes, sidecars included."""
    return footprint_of(pod).ports


def _plus(total: Amounts, more: Amounts, sign: int) -> Amounts:
    result = dict(total)
    for name, amount in more.items():
        result[name] = result.get(name, 0) + sign * amount
    return result
