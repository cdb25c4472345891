"""Scenes and objects for the tests of garbage crashes, here and elsewhere."""

from __future__ import annotations

from drakit.client import CONFIG_MAPS, NAMESPACES
from tests.builders.cluster import Cluster
from tests.builders.manifests import claim, pod, pod_group
from tests.controllers.garbage import chain, config


async def owners_go(it: Cluster) -> None:
    for propagation in ("Background", "Foreground", "Orphan"):
        await chain(it, block=True)
        await it.delete(CONFIG_MAPS, "a", grace=None, propagation=propagation)
    await it.create(config("x"), config("y"))
    await it.create(config("z", await it.find(CONFIG_MAPS, "x"), await it.find(CONFIG_MAPS, "y")))
    await it.delete(CONFIG_MAPS, "x", grace=None)


async def a_namespace_goes(it: Cluster) -> None:
    await it.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}})
    for document in (config("a"), pod("p", group="pg"), claim("c"), pod_group("pg", [])):
        document["metadata"]["namespace"] = "ns"
        await it.create(document)
    await it.delete(NAMESPACES, "ns", grace=None)
    await it.run_for(10)
