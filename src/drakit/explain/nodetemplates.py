"""Nodes as templates: one more of a kind that the cluster has, or of any kind that is given. Pure.

In:  a cluster, the name of a node.
Out: templates, and the objects of new nodes made of them: a node that is free, with the slices of its drivers.
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
"""Taints of this domain tell of a state of one node, not of its kind."""


class NodeTemplate(msgspec.Struct, frozen=True):
    """A kind of node. `name` is how people call it: that of a node which is like it, of a profile, of a file."""

    name: str
    node: Node
    slices: tuple[ResourceSlice, ...] = ()

    @property
    def devices(self) -> int:
        return sum(len(each.spec.devices) for each in self.slices)


def template_of(cluster: ClusterObjects, name: str) -> NodeTemplate | None:
    """The kind of a node of the cluster."""
    node = cluster.find(Node, name)
    if node is None:
        return None
    return NodeTemplate(name, node, tuple(each for each in cluster.all(ResourceSlice) if each.spec.node_name == name))


def templates_of(cluster: ClusterObjects) -> list[NodeTemplate]:
    """The kinds of nodes that the cluster has, each once, named after the first node of the kind."""
    slices: dict[str, list[ResourceSlice]] = {}
    for each in cluster.all(ResourceSlice):
        if each.spec.node_name:
            slices.setdefault(each.spec.node_name, []).append(each)
    found: dict[Any, NodeTemplate] = {}
    for node in sorted(cluster.all(Node), key=lambda each: each.metadata.name):
        name = node.metadata.name
        template = NodeTemplate(name, node, tuple(slices.get(name, ())))
        found.setdefault(_kind(template), template)
    return list(found.values())


def enlarged(template: NodeTemplate, number: int) -> NodeTemplate:
    """The kind with so many whole devices of each shape: a machine that nobody has published yet."""
    slices = []
    for each in template.slices:
        shapes = {_shape(device): device for device in each.spec.devices}
        devices = [
            replace(device, name=f"{device.name}-{position}", taints=(), consumes_counters=())
            for device in shapes.values()
            for position in range(number)
        ]
        pool = replace(each.spec.pool, resource_slice_count=1)
        slices.append(replace(each, spec=replace(each.spec, devices=tuple(devices), pool=pool, shared_counters=())))
    return NodeTemplate(template.name, template.node, tuple(each for each in slices if each.spec.devices)[:1])


def new_nodes(template: NodeTemplate, number: int, taken: Sequence[str] = ()) -> list[Any]:
    """The objects of so many new nodes of a kind, under names that nobody has."""
    return [each for name in _names(template, number, frozenset(taken)) for each in _stamped(template, name)]


def _names(template: NodeTemplate, number: int, taken: frozenset[str]) -> Iterator[str]:
    position = 0
    for _ in range(number):
        position += 1
        while f"{template.name}-new-{position}" in taken:
            position += 1
        yield f"{template.name}-new-{position}"


def _stamped(template: NodeTemplate, name: str) -> Iterator[Any]:
    old, labels = template.node.metadata, dict(template.node.metadata.labels)
    if HOSTNAME in labels:
        labels[HOSTNAME] = name
    taints = tuple(each for each in template.node.spec.taints if not each.key.startswith(_PASSING))
    spec = replace(template.node.spec, unschedulable=False, taints=taints)
    yield replace(template.node, metadata=ObjectMeta(name=name, labels=labels), spec=spec)
    for position, each in enumerate(template.slices):
        pool = each.spec.pool
        called = name if pool.name == old.name else f"{pool.name}-{name}"
        moved = replace(each.spec, node_name=name, pool=replace(pool, name=called))
        yield replace(each, metadata=ObjectMeta(name=f"{name}-{position}"), spec=moved)


def _kind(template: NodeTemplate) -> bytes:
    """What two nodes have in common that are of one kind."""
    node = template.node
    labels = {key: value for key, value in node.metadata.labels.items() if key != HOSTNAME}
    allocatable = {key: str(value) for key, value in node.status.allocatable.items()}
    slices = [(each.spec.driver, sorted(map(_shape, each.spec.devices))) for each in template.slices]
    return msgspec.json.encode([labels, allocatable, sorted(slices)], order="deterministic")


def _shape(device: Any) -> str:
    """A device without what tells it from its siblings."""
    plain = msgspec.to_builtins((device.allow_multiple_allocations, device.consumes_counters), enc_hook=str)
    amounts = sorted((name, str(each.value)) for name, each in device.capacity.items())
    return repr((plain, amounts, sorted((name, str(each)) for name, each in device.attributes.items())))
