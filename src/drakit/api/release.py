"""The release of Kubernetes that drakit behaves like."""

from __future__ import annotations

KUBERNETES = "v1.36.4"
MINOR = int(KUBERNETES.split(".")[1])
