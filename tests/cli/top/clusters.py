"""Clusters for the tests of `drakit top`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from drakit.api import Event, Node, Pod, ResourceSlice, from_plain

ROOT = Path(__file__).parents[3]
DEMO = str(ROOT / "examples" / "demo-cluster")


def waiting(name: str, why: str, *, node: str = "") -> Pod:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why}
    return from_plain(
        Pod,
        {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"containers": [{"name": "main"}], **({"nodeName": node} if node else {})},
            "status": {"phase": "Pending", "conditions": [condition] if why else []},
        },
    )


def event(reason: str, time: str) -> Event:
    about = {"kind": "Pod", "namespace": "default", "name": "p"}
    document = {"metadata": {"name": reason.lower()}, "involvedObject": about, "reason": reason, "type": "Normal"}
    return from_plain(Event, {**document, "lastTimestamp": time, "message": f"it was {reason}"})


def node_with(name: str, driver: str, devices: int) -> list[Any]:
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    published = [{"name": f"dev-{number}"} for number in range(devices)]
    spec = {"driver": driver, "nodeName": name, "pool": pool, "devices": published}
    return [
        from_plain(Node, {"metadata": {"name": name}}),
        from_plain(ResourceSlice, {"metadata": {"name": f"{name}-s"}, "spec": spec}),
    ]
