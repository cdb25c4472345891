"""Kinds of nodes, and new nodes of a kind: of one that the cluster has, or of a given one. Pure.

In:  a cluster, the name of a node.
Out: kinds, and the objects of new nodes made of them: a node that is free, with the slices of its drivers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from drakit.api import Node, ObjectMeta, ResourceSlice
from drakit.explain.cluster import ClusterObjects

HOSTNAME = "kubernetes.io/hostname"
_PASSING = "node.kubernetes.io/"
"""Taints of this domain are about the state of one node, not about its kind."""


class NodeKind(msgspec.Struct, frozen=True):
    """A node and its slices as the pattern of new nodes. `name` is that of a node, of a profile or of a file."""

    name: str
    node: Node
    slices: tuple[ResourceSlice, ...] = ()

    @property
    def devices(self) -> int:
        return sum(len(each.spec.devices) for each in self.slices)


def kind_of_node(cluster: ClusterObjects, name: str) -> NodeKind | None:
    """The kind of a node of the cluster."""
    node = cluster.find(Node, name)
    if node is None:
        return None
    return NodeKind(name, node, tuple(each for each in cluster.all(ResourceSlice) if each.spec.node_name == name))


def node_kinds(cluster: ClusterObjects) -> list[NodeKind]:
    """The kinds of nodes that the cluster has, each once, named after the first node of the kind."""
    slices: dict[str, list[ResourceSlice]] = {}
    for each in cluster.all(ResourceSlice):
        if each.spec.node_name:
            slices.setdefault(each.spec.node_name, []).append(each)
    found: dict[Any, NodeKind] = {}
    for node in sorted(cluster.all(Node), key=lambda each: each.metadata.name):
        name = node.metadata.name
        kind = NodeKind(name, node, tuple(slices.get(name, ())))
        found.setdefault(_kind(kind), kind)
    return list(found.values())


def enlarged(kind: NodeKind, number: int) -> NodeKind:
    """The kind with this number of whole devices of each shape: a larger machine, which the cluster need not have."""
    slices = []
    for each in kind.slices:
        shapes = {_shape(device): device for device in each.spec.devices}
        devices = [
            # Without counters: how the partitions of such a machine would look is unknown.
            replace(device, name=f"{device.name}-{position}", taints=(), consumes_counters=())
            for device in shapes.values()
            for position in range(number)
        ]
        pool = replace(each.spec.pool, resource_slice_count=1)
        slices.append(replace(each, spec=replace(each.spec, devices=tuple(devices), pool=pool, shared_counters=())))
    return NodeKind(kind.name, kind.node, tuple(each for each in slices if each.spec.devices)[:1])


def new_nodes(kind: NodeKind, number: int, taken: Sequence[str] = ()) -> list[Any]:
    """The objects of so many new nodes of a kind, under names that nobody has."""
    return [each for name in _names(kind, number, frozenset(taken)) for each in _stamped(kind, name)]


def _names(kind: NodeKind, number: int, taken: frozenset[str]) -> Iterator[str]:
    position = 0
    for _ in range(number):
        position += 1
        while f"{kind.name}-new-{position}" in taken:
            position += 1
        yield f"{kind.name}-new-{position}"


def _stamped(kind: NodeKind, name: str) -> Iterator[Any]:
    old, labels = kind.node.metadata, dict(kind.node.metadata.labels)
    if HOSTNAME in labels:
        labels[HOSTNAME] = name
    # not-ready, unreachable and the like belong to the state of the old node.
    taints = tuple(each for each in kind.node.spec.taints if not each.key.startswith(_PASSING))
    spec = replace(kind.node.spec, unschedulable=False, taints=taints)
    yield replace(kind.node, metadata=ObjectMeta(name=name, labels=labels), spec=spec)
    for position, each in enumerate(kind.slices):
        pool = each.spec.pool
        # Pools are mostly named after their node. Any other name gets the node as a suffix, as it must be unique.
        called = name if pool.name == old.name else f"{pool.name}-{name}"
        moved = replace(each.spec, node_name=name, pool=replace(pool, name=called))
        yield replace(each, metadata=ObjectMeta(name=f"{name}-{position}"), spec=moved)


def _kind(kind: NodeKind) -> bytes:
    """A key that is equal for nodes of the same kind: labels, allocatable and device shapes."""
    node = kind.node
    labels = {key: value for key, value in node.metadata.labels.items() if key != HOSTNAME}
    allocatable = {key: str(value) for key, value in node.status.allocatable.items()}
    slices = [(each.spec.driver, sorted(map(_shape, each.spec.devices))) for each in kind.slices]
    return msgspec.json.encode([labels, allocatable, sorted(slices)], order="deterministic")


def _shape(device: Any) -> str:
    """A key that is equal for devices that are alike, whatever their names."""
    plain = msgspec.to_builtins((device.allow_multiple_allocations, device.consumes_counters), enc_hook=str)
    amounts = sorted((name, str(each.value)) for name, each in device.capacity.items())
    return repr((plain, amounts, sorted((name, str(each)) for name, each in device.attributes.items())))
