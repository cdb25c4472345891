"""Updates are refused, and taken, as kube-apiserver v1.36.4 does it.

Each line of `updates.jsonl.gz` has an object and changes of one field of it, with the answer of a kube-apiserver to
the update with `dryRun=All`: the code, and the message up to the first line break, behind which it shows what differs.
"""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from drakit.apiserver import Settings
from tests.apiserver.calls import on_loop, serving

DATA = Path(__file__).parent / "data" / "updates.jsonl.gz"
KINDS = (
    "CSIDriver", "CSINode", "CSIStorageCapacity", "CertificateSigningRequest", "ClusterRole",
    "ClusterRoleBinding", "ConfigMap", "ControllerRevision", "CronJob", "DaemonSet", "Deployment", "EndpointSlice",
    "Endpoints", "Event", "HorizontalPodAutoscaler", "IPAddress", "Ingress", "IngressClass", "Job",
    "Lease", "LimitRange", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration", "NetworkPolicy", "Node", "PersistentVolume", "PersistentVolumeClaim", "Pod",
    "PodDisruptionBudget", "PodTemplate", "PriorityClass", "ReplicaSet",
    "ReplicationController", "ResourceQuota", "Role", "RoleBinding", "RuntimeClass", "Secret", "Service",
    "ServiceAccount", "ServiceCIDR", "StatefulSet", "StorageClass", "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration", "VolumeAttachment", "VolumeAttributesClass",
)  # fmt: skip


@cache
def objects() -> Mapping[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for line in gzip.decompress(DATA.read_bytes()).splitlines():
        recorded = json.loads(line)
        found.setdefault(recorded["document"]["kind"], []).append(recorded)
    return found


def changed(document: dict[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """The document with another value at a place, or none."""
    new = copy.deepcopy(document)
    *before, last = change["at"]
    holder: Any = new
    for step in before:
        holder = holder[step]
    if "value" in change:
        holder[last] = change["value"]
    else:
        del holder[last]
    return new


def test_all_recorded_kinds_are_here() -> None:
    assert set(objects()) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
@on_loop
async def test_a_change_gets_the_recorded_answer(kind: str) -> None:
    # As the server that was recorded: nobody adds volumes with tokens.
    settings = Settings(disable_plugins=("ServiceAccount",))
    async with serving(settings) as api:
        for recorded in objects()[kind]:
            made = await api.create(recorded["path"], recorded["document"])
            assert made.code == 201, made.body
            path = f"{recorded['path']}/{made.body['metadata']['name']}"
            stored = (await api.get(path)).body
            for change in recorded["changes"]:
                answer = await api.update(path, changed(stored, change), dryRun="All")
                told = answer.message.partition("\n")[0] if answer.code >= 400 else ""
                assert (answer.code, told) == (change["code"], change["message"]), (path, change["at"])
            await api.delete(path, gracePeriodSeconds="0")
