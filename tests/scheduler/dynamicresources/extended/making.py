"""Pods, nodes and the like, as short as can be."""

from __future__ import annotations

from collections.abc import Mapping

from drakit.api import Container, Node, NodeStatus, ObjectMeta, Pod, PodSpec
from drakit.api.objects.pods import ResourceRequirements
from drakit.base.quantity import Quantity
from drakit.scheduler.framework import NodeInfo

GPU = "example.com/gpu"
NIC = "example.com/nic"


def container(name: str, requests: Mapping[str, str], *, sidecar: bool = False) -> Container:
    amounts = {resource: Quantity.parse(amount) for resource, amount in requests.items()}
    return Container(
        name=name,
        resources=ResourceRequirements(requests=amounts, limits=amounts),
        restart_policy="Always" if sidecar else None,
    )


def asking_pod(*containers: Container, init: tuple[Container, ...] = (), name: str = "p") -> Pod:
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default", uid=f"uid-{name}"),
        spec=PodSpec(containers=containers, init_containers=init),
    )


def node_with(name: str, **allocatable: str) -> NodeInfo:
    """`gpu` and `nic` stand for the resources of these names."""
    known = {"gpu": GPU, "nic": NIC}
    amounts = {known.get(each, each): Quantity.parse(amount) for each, amount in allocatable.items()}
    return NodeInfo(Node(metadata=ObjectMeta(name=name), status=NodeStatus(allocatable=amounts)))
