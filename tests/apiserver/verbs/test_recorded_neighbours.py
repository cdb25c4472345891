"""Pods, and kinds around them, are refused, and taken, as kube-apiserver v1.36.4 does it.

Each case is a manifest with one thing changed: a field left out, a word or number that is wrong, an element twice.
`neighbours.jsonl.gz` has the answers of a kube-apiserver to a creation with `dryRun=All`.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.calls import on_loop, serving

DATA = Path(__file__).parent / "data" / "neighbours.jsonl.gz"
KINDS = (
    "CSIDriver", "CSINode", "CSIStorageCapacity", "CertificateSigningRequest", "ClusterRole",
    "ClusterRoleBinding", "ConfigMap", "ControllerRevision", "CronJob", "DaemonSet", "Deployment", "EndpointSlice",
    "Endpoints", "Event", "FlowSchema", "HorizontalPodAutoscaler", "IPAddress", "Ingress", "IngressClass", "Job",
    "Lease", "LimitRange", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration", "Namespace", "NetworkPolicy", "Node", "PersistentVolume", "PersistentVolumeClaim",
    "Pod", "PodDisruptionBudget", "PodTemplate", "PriorityClass", "PriorityLevelConfiguration", "ReplicaSet",
    "ReplicationController", "ResourceQuota", "Role", "RoleBinding", "RuntimeClass", "Secret", "Service",
    "ServiceAccount", "ServiceCIDR", "StatefulSet", "StorageClass", "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration", "VolumeAttachment", "VolumeAttributesClass",
)  # fmt: skip


@cache
def cases() -> Mapping[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for line in gzip.decompress(DATA.read_bytes()).splitlines():
        case = json.loads(line)
        found.setdefault(case["document"]["kind"], []).append(case)
    return found


def test_all_recorded_kinds_are_here() -> None:
    assert set(cases()) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
@on_loop
async def test_a_wrong_manifest_gets_the_recorded_answer(kind: str) -> None:
    async with serving() as api:
        for case in cases()[kind]:
            answer = await api.create(case["path"], case["document"], dryRun="All")
            told = answer.message if answer.code >= 400 else ""
            assert (answer.code, told) == (case["code"], case["message"]), json.dumps(case["document"])
