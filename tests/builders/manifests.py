"""Objects for scenarios, as a user would write them."""

from __future__ import annotations

from typing import Any

Plain = dict[str, Any]

CLASS = "gpu.example.com"
DRIVER = "gpu.example.com"


def device_class(name: str = CLASS, driver: str = DRIVER) -> Plain:
    selector = {"cel": {"expression": f'device.driver == "{driver}"'}}
    return {
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name},
        "spec": {"selectors": [selector]},
    }  # fmt: skip


def claim_spec(**request: Any) -> Plain:
    return {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": CLASS, **request}}]}}


def claim(name: str, **metadata: Any) -> Plain:
    return {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default", **metadata}, "spec": claim_spec(),
    }  # fmt: skip


def template(name: str = "t", **request: Any) -> Plain:
    return {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "metadata": {"labels": {"team": "ml"}, "annotations": {"note": "fast"}}, "spec": claim_spec(**request),
        },
    }  # fmt: skip


def pod(name: str, *, claims: list[Plain] | None = None, node: str = "", group: str = "", **metadata: Any) -> Plain:
    spec: Plain = {
        "restartPolicy": "Never",
        "containers": [{"name": "ctr", "image": "img"}],
        "resourceClaims": claims or [],
    }
    if node:
        spec["nodeName"] = node
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default", **metadata}, "spec": spec,
    }  # fmt: skip


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
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def resource_slice(
    name: str, *devices: str, pool: str = "pool", node: str = "node-1", generation: int = 1, count: int = 1
) -> Plain:
    return {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name},
        "spec": {
            "driver": DRIVER, "nodeName": node, "devices": [{"name": each} for each in devices],
            "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
        },
    }  # fmt: skip


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
