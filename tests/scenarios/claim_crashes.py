"""Scenes and objects for the tests of claim crashes, here and elsewhere."""

from __future__ import annotations

from drakit.client import CLAIMS, POD_GROUPS, PODS
from tests.builders.cluster import Cluster
from tests.builders.manifests import by_name, by_template, claim, node, pod, pod_group, template
from tests.controllers.claims import allocate


async def pods_come_and_go(it: Cluster) -> None:
    await it.create(node("node-1"), pod("p", claims=[by_template("a"), by_template("b"), by_name("c", "d")]))
    await it.create(template(), claim("c"))
    owner = await it.find(PODS, "p")
    for made in await it.all(CLAIMS):
        await allocate(it, made.metadata.name, owner)
    await it.create(pod("q", claims=[by_name("c")], node="node-1"))
    await it.set_status(PODS, "p", {"phase": "Succeeded"})
    await it.delete(PODS, "q")


async def a_group_comes_and_goes(it: Cluster) -> None:
    await it.create(template(), pod_group("pg", [by_template()]))
    await it.create(*(pod(name, claims=[by_template()], group="pg") for name in ("p", "q")))
    [made] = await it.all(CLAIMS)
    await allocate(it, made.metadata.name, await it.find(POD_GROUPS, "pg"))
    await it.delete(PODS, "p")
    group = await it.client.get(POD_GROUPS, "pg", namespace="default")
    await it.client.patch(group, {"metadata": {"finalizers": None}})
    await it.delete(POD_GROUPS, "pg", grace=None)
