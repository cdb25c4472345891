"""Warnings about pods: what is stored and nobody here acts on.

The scheduler places by node selector, node and pod affinity, spread, taints, resources, ports and claims. What else
Kubernetes would act on when it places a pod is told, so that nobody waits for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from drakit.api import Partial, Pod
from drakit.base.fields import Path
from drakit.base.gates import FeatureGates
from drakit.validation.warnings.findings import FieldWarning

_SPEC = Path("spec")
_VOLUMES = {
    "persistentVolumeClaim": "does not bind persistent volumes or place the pod by them",
    "ephemeral": "does not make or place the pod by ephemeral volumes",
    "csi": "does not place the pod by volumes of CSI drivers",
}
_FIELDS = {
    "os": "is not looked at: the pod may come to a node of another operating system",
}


def warn_of_pod(pod: Partial[Pod], gates: FeatureGates) -> Iterator[FieldWarning]:
    yield from _of_charges(pod.view)
    spec: Mapping[str, Any] = pod.document.get("spec") or {}
    # A pod that has its node is placed already.
    if spec.get("nodeName"):
        return
    for name, message in _FIELDS.items():
        if spec.get(name):
            yield FieldWarning("unscheduled-field", _SPEC / name, message)
    for index, volume in enumerate(spec.get("volumes") or ()):
        for kind, message in _VOLUMES.items():
            if volume.get(kind) is not None:
                where = (_SPEC / "volumes")[index] / kind
                yield FieldWarning("unscheduled-field", where, f"the scheduler {message}")
    if spec.get("schedulingGroup") and not gates.enabled("GangScheduling"):
        message = "the pods of the group are scheduled one by one: the feature gate GangScheduling is off"
        yield FieldWarning("unscheduled-field", _SPEC / "schedulingGroup", message)


def _of_charges(pod: Pod) -> Iterator[FieldWarning]:
    """The recorded server checks the claims that take something of the node, and takes any name for a container."""
    charges = pod.status.node_allocatable_resource_claim_statuses
    known = {each.name for each in (*pod.spec.containers, *pod.spec.init_containers)} if charges else set()
    for index, charge in enumerate(charges):
        path = (Path("status.nodeAllocatableResourceClaimStatuses")[index]) / "containers"
        for number, name in enumerate(charge.containers):
            if name not in known:
                yield FieldWarning("unknown-container", path[number], f'the pod has no container "{name}"')
