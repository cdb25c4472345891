"""A node with one device and a pod that asks for it, on whichever server; kubelets are played by the tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.e2e.upstream import kubectl, shown

NODE = "n1"
RENEWED = {"holderIdentity": NODE, "leaseDurationSeconds": 86_400, "renewTime": "2100-01-01T00:00:00.000000Z"}
READY = {"type": "Ready", "status": "True", "reason": "Made", "message": "made by a test"}
AMOUNTS = {"cpu": "8", "memory": "16Gi", "pods": "110"}
SLICE = {
    "driver": "gpu.example.com", "nodeName": NODE, "devices": [{"name": "gpu-0"}],
    "pool": {"name": NODE, "generation": 1, "resourceSliceCount": 1},
}  # fmt: skip
REQUEST = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
CLUSTER: list[dict[str, Any]] = [
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}},
    {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": RENEWED,
     "metadata": {"name": NODE, "namespace": "kube-node-lease"}},
    {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "n1-gpus"}, "spec": SLICE},
    {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}},
    {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "one-gpu"},
     "spec": {"spec": {"devices": {"requests": [REQUEST]}}}},
]  # fmt: skip
OLD = "resource.k8s.io/v1beta1"
OLD_CLUSTER: list[dict[str, Any]] = [
    *CLUSTER[:2],
    {**CLUSTER[2], "apiVersion": OLD, "spec": {**SLICE, "devices": [{"name": "gpu-0", "basic": {}}]}},
    {**CLUSTER[3], "apiVersion": OLD},
    {**CLUSTER[4], "apiVersion": OLD,
     "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "deviceClassName": "gpu"}]}}}},
]  # fmt: skip
POD: dict[str, Any] = {
    "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"},
    "spec": {
        "containers": [{"name": "c", "image": "pause", "resources": {"claims": [{"name": "gpu"}]}}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}],
    },
}  # fmt: skip


def prepare(kubeconfig: Path, cluster: list[dict[str, Any]] = CLUSTER) -> None:
    """A node that is ready, with one device, and what a pod needs to ask for it."""
    objects = {"apiVersion": "v1", "kind": "List", "items": cluster}
    kubectl(kubeconfig, "apply", "--server-side", "-f", "-", stdin=json.dumps(objects))
    status = {"status": {"capacity": AMOUNTS, "allocatable": AMOUNTS, "conditions": [READY]}}
    kubectl(kubeconfig, "patch", "node", NODE, "--subresource=status", "--type=merge", "-p", json.dumps(status))
    # Admission taints new nodes; who takes that back may not run here.
    kubectl(kubeconfig, "patch", "node", NODE, "--type=merge", "-p", '{"spec":{"taints":null}}')


def place_of(kubeconfig: Path, pod: str) -> str:
    return str(shown(kubeconfig, "pod", pod).get("spec", {}).get("nodeName", ""))


def nodes_of_pods(kubeconfig: Path, *selection: str) -> list[str]:
    pods = shown(kubeconfig, "pods", *selection).get("items", [])
    return [each["spec"].get("nodeName", "") for each in pods]


def states_of_claims(kubeconfig: Path) -> list[bool]:
    return ["allocation" in each.get("status", {}) for each in shown(kubeconfig, "resourceclaims").get("items", ())]


def play_kubelet(kubeconfig: Path, *selection: str) -> None:
    """Let pods that are bound run, and those that are being deleted go."""
    for pod in shown(kubeconfig, "pods", *selection).get("items", []):
        name = ("-n", pod["metadata"]["namespace"], "pod", pod["metadata"]["name"])
        if pod["metadata"].get("deletionTimestamp"):
            kubectl(kubeconfig, "delete", *name, "--grace-period=0", "--force", "--wait=false", check=False)
        elif pod["spec"].get("nodeName") and pod["status"].get("phase") == "Pending":
            status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            patch = ("--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
            # It may be gone meanwhile.
            kubectl(kubeconfig, "patch", *name, *patch, check=False)
