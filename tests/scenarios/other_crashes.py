"""Scenes and objects for the tests of other crashes, here and elsewhere."""

from __future__ import annotations

from drakit.client import CLAIMS, PODS
from tests.builders.cluster import Cluster
from tests.builders.manifests import claim, device_class, pod, resource_slice
from tests.controllers.poolstatus import question
from tests.controllers.quotas import COUNT, DEVICES, quota


async def claims_are_counted(it: Cluster) -> None:
    await it.create(device_class(), claim("a"), quota(**{COUNT: "5", DEVICES: "5", "pods": "5"}))
    await it.create(claim("b"), pod("p"))
    await it.delete(CLAIMS, "a", grace=None)
    await it.run_for(5)
    await it.set_status(PODS, "p", {"phase": "Succeeded"})
    await it.run_for(5)


async def pools_are_asked_for(it: Cluster) -> None:
    await it.create(resource_slice("s", "d0", "d1"), question())
    await it.run_for(3700)


async def pods_end(it: Cluster) -> None:
    for name in ("a", "b", "c"):
        await it.create(pod(name))
        await it.set_status(PODS, name, {"phase": "Succeeded"})
        await it.run_for(1)
    await it.run_for(30)
