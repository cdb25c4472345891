"""The eviction of pods dies after every single write: each pod goes once, each is told of at least once."""

from __future__ import annotations

from drakit.client import CLAIMS, PODS
from drakit.controllers.eviction import DeviceTaintEviction
from tests.controllers.cluster import Cluster
from tests.controllers.manifests import DRIVER, device_class, resource_slice
from tests.controllers.test_eviction import KEY, rule, taint_slice, user
from tests.scenarios.crashes import check_every_crash


async def taints_come(it: Cluster) -> None:
    await it.create(device_class(), resource_slice("s", "d0", "d1", "d2"))
    await user(it, "p")
    await user(it, "q", device="d1", tolerations=[{"operator": "Exists", "tolerationSeconds": 20}])
    await taint_slice(it, 0, [{"key": KEY, "effect": "NoExecute"}])
    await it.create(rule(driver=DRIVER, device="d1"))
    await it.run_for(40)


def test_pods_that_go_at_once_and_later() -> None:
    # The rule's own status is left out: it counts what went since the controller was started.
    assert check_every_crash(taints_come, (DeviceTaintEviction,), (PODS, CLAIMS), apart=("devicetaintrules",)) >= 6
