"""Scenes and objects for the tests of eviction, here and elsewhere."""

from __future__ import annotations

from typing import Any

from drakit.client import CLAIMS, PODS, SLICES
from tests.builders.cluster import Cluster
from tests.builders.documents import Plain
from tests.builders.manifests import allocation, by_name, claim, consumer, pod

KEY = "example.com/unhealthy"


async def user(it: Cluster, name: str, *, device: str = "d0", tolerations: list[Plain] | None = None) -> None:
    """A pod on a node that has a device by a claim of its own."""
    await it.create(claim(f"{name}-claim"), pod(name, claims=[by_name(f"{name}-claim")], node="node-1"))
    given = allocation(device, tolerations=tolerations or [])
    users = [consumer(await it.find(PODS, name))]
    await it.set_status(CLAIMS, f"{name}-claim", {"allocation": given, "reservedFor": users})


def rule(effect: str = "NoExecute", *, name: str = "rule", **selector: Any) -> Plain:
    return {
        "apiVersion": "resource.k8s.io/v1beta2", "kind": "DeviceTaintRule", "metadata": {"name": name},
        "spec": {"deviceSelector": selector or None, "taint": {"key": KEY, "effect": effect}},
    }  # fmt: skip


async def taint_slice(it: Cluster, device: int, taints: list[Plain], *, name: str = "s") -> None:
    found = await it.client.get(SLICES, name)
    steps = [{"op": "add", "path": f"/spec/devices/{device}/taints", "value": taints}]
    await it.client.patch(found, steps, kind="application/json-patch+json")
    await it.settle()
