"""Scenes and objects for the tests of eviction crashes, here and elsewhere."""

from __future__ import annotations

from tests.builders.cluster import Cluster
from tests.builders.documents import DRIVER
from tests.builders.manifests import device_class, resource_slice
from tests.controllers.eviction import KEY, rule, taint_slice, user


async def taints_come(it: Cluster) -> None:
    await it.create(device_class(), resource_slice("s", "d0", "d1", "d2"))
    await user(it, "p")
    await user(it, "q", device="d1", tolerations=[{"operator": "Exists", "tolerationSeconds": 20}])
    await taint_slice(it, 0, [{"key": KEY, "effect": "NoExecute"}])
    await it.create(rule(driver=DRIVER, device="d1"))
    await it.run_for(40)
