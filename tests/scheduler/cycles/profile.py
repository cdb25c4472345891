"""Profiles of functions, for tests of the cycle without a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from drakit.api.objects.cluster import Node, NodeStatus
from drakit.api.objects.meta import ObjectMeta
from drakit.api.objects.pods import Pod, PodSpec, PodStatus
from drakit.scheduler.framework import SUCCESS, NodeInfo, PluginStatus, Profile

POD = Pod(metadata=ObjectMeta(name="p", namespace="default", uid="u"), spec=PodSpec(scheduler_name="s"))


def nominated(node: str) -> Pod:
    return Pod(metadata=POD.metadata, spec=POD.spec, status=PodStatus(nominated_node_name=node))


class Nodes(list[NodeInfo]):
    """As the cache shows them."""

    @property
    def affine(self) -> dict[str, int]:
        return {}

    @property
    def tainted(self) -> tuple[str, ...]:
        return ()

    @property
    def cordoned(self) -> tuple[str, ...]:
        return ()

    @property
    def advertised(self) -> tuple[str, ...]:
        return ()

    def all(self) -> list[NodeInfo]:
        return list(self)

    def placed(self) -> list[Pod]:
        return [pod for node in self for pod in node.pods.values()]

    def get(self, name: str) -> NodeInfo | None:
        return next((each for each in self if each.name == name), None)


def nodes(count: int) -> Nodes:
    return Nodes(NodeInfo(Node(metadata=ObjectMeta(name=f"n{number}"), status=NodeStatus())) for number in range(count))


def profile(
    *,
    pre_filters: Sequence[tuple[str, Any]] = (),
    filters: Sequence[tuple[str, Any]] = (),
    scores: Sequence[tuple[str, Any, int]] = (),
    percentage: int = 0,
) -> Profile:
    return Profile(
        name="s",
        percentage=percentage,
        pre_filter=tuple(Doing(name, pre_filter=call) for name, call in pre_filters),
        filter=tuple(Doing(name, filter=call) for name, call in filters),
        score=tuple((Doing(name, score=call), weight) for name, call, weight in scores),
    )


class Doing:
    """A plugin that does what it is told at the points that it is told."""

    def __init__(self, name: str, **points: Callable[..., Any]) -> None:
        self.name = name
        self.__dict__.update(points)

    pre_filter: Callable[..., Any]
    filter: Callable[..., Any]
    score: Callable[..., Any]


def says(status: PluginStatus = SUCCESS, only: frozenset[str] | None = None) -> Callable[..., Any]:
    """A pre_filter."""
    return lambda *_: (status, only)


def refuses(status: PluginStatus, *names: str) -> Callable[..., Any]:
    """A filter that refuses the nodes of these names; without names, all."""
    return lambda _, __, given: {each.name: status for each in given if not names or each.name in names}


def scores(**by_name: int) -> Callable[..., Any]:
    """A score."""
    return lambda _, __, given: [by_name.get(each.name, 0) for each in given]
