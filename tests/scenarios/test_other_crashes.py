"""Quotas, pool status and pods that ended: each controller dies after every single write."""

from __future__ import annotations

from functools import partial

from drakit.client import CLAIMS, PODS, POOL_STATUS_REQUESTS, QUOTAS
from drakit.controllers import FinishedPods, PoolStatusController, QuotaController
from tests.controllers.cluster import Cluster
from tests.controllers.manifests import claim, device_class, pod, resource_slice
from tests.controllers.test_poolstatus import question
from tests.controllers.test_quotas import COUNT, DEVICES, quota
from tests.scenarios.crashes import check_every_crash


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


def test_quotas() -> None:
    assert check_every_crash(claims_are_counted, (QuotaController,), (QUOTAS, CLAIMS)) >= 3


def test_pool_status() -> None:
    assert check_every_crash(pools_are_asked_for, (PoolStatusController,), (POOL_STATUS_REQUESTS,)) >= 2


def test_pods_that_ended() -> None:
    assert check_every_crash(pods_end, (partial(FinishedPods, threshold=1),), (PODS,)) >= 2
