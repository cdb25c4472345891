"""Scenes and objects for the tests of disruption budgets, here and elsewhere."""

from __future__ import annotations

from typing import Any

from drakit.client import PODS
from drakit.client.failures import Answered
from tests.builders.cluster import Cluster
from tests.builders.documents import Plain
from tests.builders.manifests import pod


def budget(**spec: Any) -> Plain:
    return {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
    }  # fmt: skip


async def runs(it: Cluster, *names: str, ready: bool = True) -> None:
    """Pods that run, and are ready."""
    for name in names:
        if await it.find(PODS, name) is None:
            await it.create(pod(name, labels={"app": "web"}))
        condition = {"type": "Ready", "status": "True" if ready else "False"}
        await it.set_status(PODS, name, {"phase": "Running", "conditions": [condition]})


async def evict(it: Cluster, name: str) -> Answered | None:
    """What the server says to an eviction; nothing when it is done."""
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    try:
        await it.client.call("POST", PODS, name, "eviction", eviction, namespace="default")
    except Answered as error:
        return error
    await it.settle()
    return None


async def pods_are_evicted(it: Cluster) -> None:
    await runs(it, "a", "b", "c")
    await it.create(budget(minAvailable=1))
    await evict(it, "a")
    await evict(it, "b")
    await evict(it, "c")
    await it.run_for(130)
