"""Scenes and objects for the tests of replicasets, here and elsewhere."""

from __future__ import annotations

from typing import Any

from drakit.client import REPLICA_SETS
from tests.builders.cluster import Cluster
from tests.builders.documents import Plain
from tests.builders.manifests import by_template, pod


def replica_set(replicas: int, **spec: Any) -> Plain:
    template = {
        "metadata": {"labels": {"app": "web", "tier": "front"}, "annotations": {"note": "x"}},
        "spec": {"containers": [{"name": "ctr", "image": "img"}], "resourceClaims": [by_template()]},
    }
    return {
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template, **spec},
    }  # fmt: skip


async def scale(it: Cluster, replicas: int) -> None:
    await it.client.patch_named(REPLICA_SETS, "web", {"spec": {"replicas": replicas}}, namespace="default")
    await it.settle()


async def a_set_comes_and_goes(it: Cluster) -> None:
    await it.create(pod("stray", labels={"app": "web"}), replica_set(3))
    await scale(it, 1)
    await scale(it, 2)
