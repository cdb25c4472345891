"""Scenes and objects for the tests of quotas, here and elsewhere."""

from __future__ import annotations

from tests.builders.documents import CLASS, Plain

COUNT = "count/resourceclaims.resource.k8s.io"
DEVICES = f"{CLASS}.deviceclass.resource.k8s.io/devices"


def quota(**hard: str) -> Plain:
    return {
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": hard},
    }  # fmt: skip
