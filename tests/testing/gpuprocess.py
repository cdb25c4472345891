"""The example driver for GPUs as a process of its own, and a pod that uses a GPU."""

from __future__ import annotations

import sys
from typing import Any

DRIVER = "gpu.example.com"
COMMAND = (
    *(sys.executable, "-m", "drakit", "driver", "run", "gpu", "--node-name", "{node_name}", "--pod-uid", "{pod_uid}"),
    *("--kubeconfig", "{kubeconfig}", "--plugin-dir", "{plugin_dir}", "--registry-dir", "{registry_dir}"),
    *("--cdi-dir", "{cdi_dir}"),
)
CLAIM = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "gpu"},
    "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": DRIVER}}]}},
}
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "train"},
    "spec": {
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}],
        "containers": [{"name": "main", "image": "x", "resources": {"claims": [{"name": "gpu"}]}}],
    },
}
