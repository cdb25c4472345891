"""Kinds of nodes, and new nodes of a kind: of one that the cluster has, or of a given one. Pure.

In:  a cluster, the name of a node.
Out: kinds, and the objects of new nodes made of them: a node that is free, with the slices of its drivers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from drakit.api import DeviceClass, Node, ObjectMeta, Partial, ResourceSlice, set_defaults
from drakit.api.codec.documents import decode_plain
from drakit.base.quantity import Quantity
from drakit.explain.cluster import ClusterObjects

HOSTNAME = "kubernetes.io/hostname"
_NOW = datetime(2026, 1, 1, tzinfo=UTC)
"""A fixed time for creationTimestamp and the like. No answer depends on it."""
_MAX_DEVICES = 128
"""What one slice may have."""
_MAX_NAME = 50
_PASSING = "node.kubernetes.io/"
"""Taints of this domain are about the state of one node, not about its kind."""


class NodeKind(msgspec.Struct, frozen=True):
    """A node and its slices as the pattern of new nodes. `name` is that of a node, of a profile or of a file."""

    name: str
    node: Node
    slices: tuple[ResourceSlice, ...] = ()
    is_template: bool = False
    """Not of a node that the cluster has."""

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


def template_kinds(cluster: ClusterObjects) -> Iterator[NodeKind]:
    """The kinds of nodes that could be added to the cluster, whether it has one of them or not."""
    for name, documents in cluster.templates.items():
        kind = kind_of_documents(name, documents)
        if kind is not None:
            yield kind


def kind_of_documents(name: str, documents: Iterable[Mapping[str, Any]]) -> NodeKind | None:
    """The kind of which the documents of a Node and its slices are an example; None without a Node."""
    found = [_decoded(each) for each in documents if each.get("kind") in ("Node", "ResourceSlice")]
    node = next((each for each in found if isinstance(each, Node)), None)
    slices = tuple(each for each in found if isinstance(each, ResourceSlice))
    return NodeKind(name, node, slices, is_template=True) if node is not None else None


def template_class(cluster: ClusterObjects, name: str) -> tuple[str, DeviceClass]:
    """A class of that name: the first template that has one, and its class; else one that every device is of."""
    for template, documents in cluster.templates.items():
        for each in documents:
            if each.get("kind") == "DeviceClass" and each["metadata"]["name"] == name:
                return template, _decoded(each)
    return "", DeviceClass(metadata=ObjectMeta(name=name))


def _decoded(document: Mapping[str, Any]) -> Any:
    # Defaults as a server sets them: the scheduler relies on them.
    found = set_defaults(decode_plain(document).object, _NOW)
    return found.view if isinstance(found, Partial) else found


def enlarged(kind: NodeKind, number: int, room: Mapping[str, Quantity]) -> NodeKind:
    """The kind with this number of whole devices of each shape, and with at least so much room: a larger machine."""
    pools: dict[tuple[str, str], list[ResourceSlice]] = {}
    for each in kind.slices:
        pools.setdefault((each.spec.driver, each.spec.pool.name), []).append(each)
    slices = tuple(each for pool in pools.values() for each in _enlarged_pool(pool, number))
    allocatable = {**kind.node.status.allocatable, **larger_amounts(kind, room)}
    status = replace(kind.node.status, allocatable=allocatable, capacity={**kind.node.status.capacity, **allocatable})
    return replace(kind, node=replace(kind.node, status=status), slices=slices)


def larger_amounts(kind: NodeKind, room: Mapping[str, Quantity]) -> dict[str, Quantity]:
    """What the kind has too little of."""
    allocatable = kind.node.status.allocatable
    return {name: amount for name, amount in room.items() if name not in allocatable or allocatable[name] < amount}


def _enlarged_pool(slices: Sequence[ResourceSlice], number: int) -> Iterator[ResourceSlice]:
    shapes = {_shape(device): device for each in slices for device in each.spec.devices}
    devices = [
        # Without counters: how the partitions of such a machine would look is unknown.
        replace(device, name=f"{device.name[:_MAX_NAME]}-{position}", taints=(), consumes_counters=())
        for position, device in enumerate(each for each in shapes.values() for _ in range(number))
    ]
    chunks = [devices[start : start + _MAX_DEVICES] for start in range(0, len(devices), _MAX_DEVICES)]
    example = slices[0]
    pool = replace(example.spec.pool, resource_slice_count=len(chunks))
    for chunk in chunks:
        yield replace(example, spec=replace(example.spec, devices=tuple(chunk), pool=pool, shared_counters=()))


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
        # Slices without a node name say by labels which nodes reach the devices; those of the new node among them.
        place = name if each.spec.node_name else each.spec.node_name
        moved = replace(each.spec, node_name=place, pool=replace(pool, name=called))
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
