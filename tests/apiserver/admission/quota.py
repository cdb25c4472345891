"""Scenes and objects for the tests of quota, here and elsewhere."""

from __future__ import annotations

from typing import Any

from drakit.api.objects.plain import Plain
from tests.builders.documents import claim_document

COUNT = "count/resourceclaims.resource.k8s.io"
DEVICES = "gpu.example.com.deviceclass.resource.k8s.io/devices"


def devices(name: str, count: int, **metadata: Any) -> Plain:
    made = claim_document(name, **metadata)
    made["spec"]["devices"]["requests"][0]["exactly"]["count"] = count
    return made
