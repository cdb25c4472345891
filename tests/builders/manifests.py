"""Objects for scenarios, as a user would write them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.builders.documents import (
    CLASS,
    DRIVER,
    Plain,
    claim_document,
    class_document,
    node_document,
    pod_document,
    request_of,
    slice_document,
)


def device_class(name: str = CLASS, driver: str = DRIVER) -> Plain:
    return class_document(name, f'device.driver == "{driver}"')


def claim_spec(**request: Any) -> Plain:
    return {"devices": {"requests": [request_of(**request)]}}


def claim(name: str = "c", *requests: Plain, constraints: Iterable[Plain] = (), **metadata: Any) -> Plain:
    return claim_document(name, *requests, constraints=constraints, **{"namespace": "default", **metadata})


def template(name: str = "t", **request: Any) -> Plain:
    return {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "metadata": {"labels": {"team": "ml"}, "annotations": {"note": "fast"}}, "spec": claim_spec(**request),
        },
    }  # fmt: skip


def pod(name: str, *, claims: list[Plain] | None = None, node: str = "", group: str = "", **metadata: Any) -> Plain:
    spec: Plain = {"restartPolicy": "Never", "resourceClaims": claims or []}
    if node:
        spec["nodeName"] = node
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    return pod_document(name, spec, **{"namespace": "default", **metadata})


def by_template(entry: str = "g", name: str = "t") -> Plain:
    return {"name": entry, "resourceClaimTemplateName": name}


def by_name(name: str, entry: str = "g") -> Plain:
    return {"name": entry, "resourceClaimName": name}


def pod_group(name: str, claims: list[Plain]) -> Plain:
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"basic": {}}, "resourceClaims": claims},
    }  # fmt: skip


def node(name: str, **labels: str) -> Plain:
    return node_document(name, **labels)


def resource_slice(
    name: str, *devices: str, pool: str = "pool", node: str = "node-1", generation: int = 1, count: int = 1
) -> Plain:
    return slice_document(name, *devices, pool=pool, node=node, generation=generation, count=count)


def allocation(device: str = "d0", node: str = "node-1", *, pool: str = "pool", **result: Any) -> Plain:
    fields = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {
        "devices": {"results": [{"request": "r", "driver": DRIVER, "pool": pool, "device": device, **result}]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [fields]}]},
    }


def consumer(obj: Any) -> Plain:
    """An entry of `reservedFor` for a pod or group."""
    grouped = {"apiGroup": "scheduling.k8s.io"} if obj.kind == "PodGroup" else {}
    plural = "podgroups" if grouped else "pods"
    return {**grouped, "resource": plural, "name": obj.metadata.name, "uid": obj.metadata.uid}
