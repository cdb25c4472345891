"""On which nodes a daemon set wants a pod, and the pod for a node. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple

from drakit.api import Node, Pod
from drakit.api.objects.apps import DaemonSet
from drakit.api.objects.partial import Partial
from drakit.base.nodeselectors import matches
from drakit.base.taints import NO_EXECUTE, NO_SCHEDULE, Toleration, tolerates, untolerated
from drakit.base.wellknown import NOT_READY_TAINT, UNREACHABLE_TAINT, UNSCHEDULABLE_TAINT

OneSet = Partial[DaemonSet]
OnePod = Partial[Pod]
OneNode = Partial[Node]

HASH = "controller-revision-hash"
GENERATION = "pod-template-generation"
_NAME = "metadata.name"
_EXECUTE = (NOT_READY_TAINT, UNREACHABLE_TAINT)
_SCHEDULE = (
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/pid-pressure",
    UNSCHEDULABLE_TAINT,
)
_NO_NETWORK = "node.kubernetes.io/network-unavailable"


class DaemonPlacement(NamedTuple):
    run: bool
    """A pod should be made here."""
    keep: bool
    """A pod that is here may stay: a NoSchedule taint keeps new pods away and leaves running ones alone."""


def placement(daemon_set: OneSet, node: OneNode) -> DaemonPlacement:
    spec, labels = daemon_set.view.spec.template.spec, node.view.metadata.labels
    name = node.view.metadata.name
    if spec.node_name and spec.node_name != name:
        return DaemonPlacement(False, False)
    if any(labels.get(key) != value for key, value in spec.node_selector.items()):
        return DaemonPlacement(False, False)
    affinity = spec.affinity.node_affinity if spec.affinity else None
    terms = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    if terms is not None and not matches(terms, name=name, labels=labels):
        return DaemonPlacement(False, False)
    tolerations = (*spec.tolerations, *_tolerations(host_network=_uses_host_network(daemon_set)))
    taints = node.view.spec.taints
    if untolerated(taints, tolerations) is None:
        return DaemonPlacement(True, True)
    # NoSchedule keeps new pods away and lets those stay that run; only NoExecute takes them away.
    driven_out = any(
        taint.effect == NO_EXECUTE and not any(tolerates(each, taint) for each in tolerations) for taint in taints
    )
    return DaemonPlacement(False, not driven_out)


def _uses_host_network(daemon_set: OneSet) -> bool:
    return bool(daemon_set.document["spec"]["template"].get("spec", {}).get("hostNetwork"))


def _tolerations(*, host_network: bool) -> list[Toleration]:
    """The tolerations that every daemon pod gets: drivers must run on nodes that are not ready yet."""
    keys = [(key, NO_EXECUTE) for key in _EXECUTE] + [(key, NO_SCHEDULE) for key in _SCHEDULE]
    if host_network:
        keys.append((_NO_NETWORK, NO_SCHEDULE))
    return [Toleration(key=key, operator="Exists", effect=effect) for key, effect in keys]


def node_of(pod: OnePod) -> str:
    """The node that a daemon pod is for, before it is bound too."""
    if pod.view.spec.node_name:
        return pod.view.spec.node_name
    affinity = pod.view.spec.affinity
    terms = affinity.node_affinity if affinity else None
    required = terms.required_during_scheduling_ignored_during_execution if terms else None
    for term in required.node_selector_terms if required else ():
        for field in term.match_fields:
            if field.key == _NAME and field.operator == "In" and len(field.values) == 1:
                return field.values[0]
    return ""


def pod_for(daemon_set: OneSet, node: str, hashed: str) -> dict[str, Any]:
    """A pod that fits that node alone; the scheduler binds it, so that its claims are allocated."""
    metadata = daemon_set.view.metadata
    template = daemon_set.document["spec"]["template"]
    about, spec = template.get("metadata") or {}, dict(template.get("spec") or {})
    mine = [
        {"key": each.key, "operator": "Exists", "effect": each.effect}
        for each in _tolerations(host_network=_uses_host_network(daemon_set))
    ]
    spec["tolerations"] = [
        *(spec.get("tolerations") or ()),
        *(each for each in mine if each not in (spec.get("tolerations") or ())),
    ]
    # By affinity and not by nodeName: the scheduler must see the pod, because only it allocates claims.
    spec["affinity"] = _bound_to(node, spec.get("affinity") or {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": f"{metadata.name}-",
            "namespace": metadata.namespace,
            "labels": {**(about.get("labels") or {}), HASH: hashed, GENERATION: str(metadata.generation)},
            "annotations": about.get("annotations") or {},
            "finalizers": about.get("finalizers") or [],
            "ownerReferences": [owner_of(daemon_set)],
        },
        "spec": spec,
    }


def _bound_to(node: str, affinity: dict[str, Any]) -> dict[str, Any]:
    """The node's name in place of the required terms: they were looked at when the node was chosen."""
    terms = {**(affinity.get("nodeAffinity") or {})}
    terms["requiredDuringSchedulingIgnoredDuringExecution"] = {
        "nodeSelectorTerms": [{"matchFields": [{"key": _NAME, "operator": "In", "values": [node]}]}]
    }
    return {**affinity, "nodeAffinity": terms}


def owner_of(daemon_set: OneSet) -> dict[str, Any]:
    metadata = daemon_set.view.metadata
    return {
        "apiVersion": "apps/v1", "kind": "DaemonSet", "name": metadata.name, "uid": metadata.uid,
        "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip
