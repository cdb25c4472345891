"""Clusters for the tools: documents to objects, and a few that many tests look at."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from drakit.api import set_defaults
from drakit.api.codec.documents import decode_plain
from drakit.base.gates import FeatureGates
from drakit.explain import ClusterObjects, NodeTemplates
from tests.builders.documents import DRIVER, Plain, claim_document, pod_document, request_of, slice_document
from tests.builders.manifests import allocation, by_name, device_class
from tests.builders.podmanifests import node

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GPU = 'device.attributes["gpu.example.com"].model == "{}"'


def objects_of(documents: Iterable[Plain], templates: NodeTemplates | None = None) -> ClusterObjects:
    objects = (set_defaults(decode_plain(each).object, NOW) for each in documents)
    return ClusterObjects(objects, gates=FeatureGates.all_on(), templates=templates)


def gpus(name: str, *models: str, **device: Any) -> Plain:
    """A node's slice: a GPU per model."""
    devices = [
        {"name": f"gpu-{number}", "attributes": {"model": {"string": model}}, **device}
        for number, model in enumerate(models)
    ]
    return slice_document(f"{name}-gpus", *devices, node=name, pool=name)


def running(name: str, node: str, *devices: str) -> list[Plain]:
    """A pod on a node with a claim that holds devices there."""
    claim = claim_document(name, request_of(count=len(devices)), namespace="default", uid=f"uid-{name}-claim")
    given = [allocation(device, node, pool=node)["devices"]["results"][0] for device in devices]
    reserved = [{"resource": "pods", "name": name, "uid": f"uid-{name}"}]
    claim["status"] = {
        "allocation": allocation(node=node) | {"devices": {"results": given}}, "reservedFor": reserved,
    }  # fmt: skip
    return [claim, waiting(name, name, node=node)]


def waiting(name: str, claim: str, *, node: str = "", cpu: str = "", **spec: Any) -> Plain:
    resources = {"requests": {"cpu": cpu}} if cpu else {}
    container = {"name": "c", "image": "i", "resources": resources}
    place = {"nodeName": node} if node else {}
    made = {"containers": [container], "resourceClaims": [by_name(claim)], "schedulerName": "default-scheduler"}
    return pod_document(name, {**made, **place, **spec}, namespace="default", uid=f"uid-{name}")


def two_nodes(*more: Plain) -> list[Plain]:
    """node-a with two GPUs, of which pod `trainer` has one; node-b with one."""
    return [
        node("node-a"), node("node-b"), device_class(DRIVER), gpus("node-a", "a100", "h100"), gpus("node-b", "h100"),
        *running("trainer", "node-a", "gpu-0"), *more,
    ]  # fmt: skip
