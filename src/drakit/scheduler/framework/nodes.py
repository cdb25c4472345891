"""A node with the pods on it, and the ledger of what they take.

In:  a Node and pods, bound or assumed.
Out: immutable `NodeInfo`s: adding or removing a pod gives another one, so a snapshot and a what-if cost a reference.

Amounts are integers: cpu in thousandths, everything else in units, both rounded up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from drakit.api.cluster import Node
from drakit.api.footprint import pod_requests
from drakit.api.pods import Pod
from drakit.base.quantity import Quantity

Amounts = Mapping[str, int]
Port = tuple[str, str, int]
"""(address, protocol, number)"""

PODS = "pods"
CPU = "cpu"
MEMORY = "memory"
_LEAST = {
    CPU: 100,
    MEMORY: 200 * 1024 * 1024,
}  # what a pod that asks for nothing is taken to use when nodes are compared
_NOTHING: Amounts = {}


class NodeInfo:
    """Invariant: `requested`, `nonzero` and `ports` are the sums over `pods`."""

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
        if pod.metadata.uid in self.pods:
            return self.without_pod(pod.metadata.uid).with_pod(pod)
        return self._changed(
            {**self.pods, pod.metadata.uid: pod},
            _plus(self.requested, requests_of(pod), 1),
            _plus(self.nonzero, nonzero_of(pod), 1),
            self.ports | ports_of(pod) if _has_ports(pod) else self.ports,
        )

    def without_pod(self, uid: str) -> NodeInfo:
        """Without the pod of that uid; the same when it is not there."""
        pod = self.pods.get(uid)
        if pod is None:
            return self
        rest = {key: each for key, each in self.pods.items() if key != uid}
        ports = frozenset(port for each in rest.values() for port in ports_of(each)) if _has_ports(pod) else self.ports
        return self._changed(
            rest, _plus(self.requested, requests_of(pod), -1), _plus(self.nonzero, nonzero_of(pod), -1), ports
        )

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

    def _changed(
        self, pods: Mapping[str, Pod], requested: Amounts, nonzero: Amounts, ports: frozenset[Port]
    ) -> NodeInfo:
        return NodeInfo(
            self.node, pods, allocatable=self.allocatable, requested=requested, nonzero=nonzero, ports=ports
        )


class Nodes(Protocol):
    """The nodes as they are in this cycle. Nothing changes while a cycle runs: it never gives up control."""

    def get(self, name: str) -> NodeInfo | None: ...

    def all(self) -> list[NodeInfo]:
        """In the order in which they are searched."""
        ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[NodeInfo]: ...


def units(amounts: Mapping[str, Quantity]) -> dict[str, int]:
    return {name: amount.milli_value if name == CPU else amount.value for name, amount in amounts.items()}


def requests_of(pod: Pod) -> dict[str, int]:
    """What a pod takes of a node: with claims of node resources, overhead, and what a resize in progress may take."""
    return units(pod_requests(pod, status=True))


def nonzero_of(pod: Pod) -> dict[str, int]:
    """cpu and memory of a pod for comparing nodes: a container that names neither counts a little all the same."""
    asked = units(pod_requests(pod, status=True, at_least=_LEAST_QUANTITIES))
    return {CPU: asked.get(CPU, 0), MEMORY: asked.get(MEMORY, 0)}


def ports_of(pod: Pod) -> frozenset[Port]:
    """The ports of the host that a pod takes, sidecars included."""
    containers = (*pod.spec.containers, *(each for each in pod.spec.init_containers if each.restart_policy == "Always"))
    return frozenset(
        (port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)  # noqa: S104 - a name, nothing is bound
        for container in containers
        for port in container.ports
        if port.host_port > 0
    )


def _has_ports(pod: Pod) -> bool:
    return any(port.host_port for each in (*pod.spec.containers, *pod.spec.init_containers) for port in each.ports)


def _plus(total: Amounts, more: Amounts, sign: int) -> dict[str, int]:
    result = dict(total)
    for name, amount in more.items():
        result[name] = result.get(name, 0) + sign * amount
    return result


_LEAST_QUANTITIES = {CPU: Quantity(100 * 10**6), MEMORY: Quantity.of(_LEAST[MEMORY])}
