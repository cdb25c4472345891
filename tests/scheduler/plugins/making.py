"""Pods and nodes for tests of plugins, by what matters of them."""

from __future__ import annotations

from typing import Any

from drakit.api.objects.cluster import Node
from drakit.api.objects.plain import from_plain
from drakit.api.objects.pods import Pod
from drakit.scheduler.framework import CycleState, NodeInfo

Plain = dict[str, Any]
ROOMY = {"cpu": "4", "memory": "8Gi", "pods": "10"}


def make_pod(
    name: str = "pod", *, requests: Plain | None = None, status: Plain | None = None, uid: str = "", **spec: Any
) -> Pod:
    container = {"name": "main", "resources": {"requests": requests or {}}}
    document = {
        "metadata": {"name": name, "namespace": "default", "uid": uid or f"uid-{name}"},
        "spec": {"containers": [container], **spec},
        "status": status or {},
    }
    return from_plain(Pod, document)


def make_node(
    name: str = "node", *, labels: Plain | None = None, allocatable: Plain | None = None, **spec: Any
) -> Node:
    document = {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": spec,
        "status": {"allocatable": ROOMY if allocatable is None else allocatable},
    }
    return from_plain(Node, document)


def on(node: Node, *pods: Pod) -> NodeInfo:
    info = NodeInfo(node)
    for pod in pods:
        info = info.with_pod(pod)
    return info


def reasons(plugin: Any, pod: Pod, *nodes: NodeInfo) -> dict[str, tuple[str, ...]]:
    """What the filter says, after the pre filter has been asked as in an attempt."""
    state = CycleState(pod)
    if hasattr(plugin, "pre_filter"):
        plugin.pre_filter(state, pod)
    return {name: status.reasons for name, status in plugin.filter(state, pod, nodes).items()}


def codes(plugin: Any, pod: Pod, *nodes: NodeInfo) -> dict[str, str]:
    return {name: status.code.name for name, status in plugin.filter(CycleState(pod), pod, nodes).items()}


def scores(plugin: Any, pod: Pod, *nodes: NodeInfo) -> list[int]:
    scores = plugin.score(CycleState(pod), pod, nodes)
    return [scores] * len(nodes) if isinstance(scores, int) else list(scores)


def hint(plugin: Any, resource: str, action: Any, pod: Pod, old: Any, new: Any) -> str:
    """What the plugin says to an event: the answer of the interest that covers it, `none` without one."""
    for interest in plugin.interests():
        if interest.event.resource == resource and interest.event.action & action:
            return interest.hint(pod, old, new).name if interest.hint else "QUEUE"
    return "none"
