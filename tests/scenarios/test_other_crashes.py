"""Quotas, pool status and pods that ended: each controller dies after every single write."""

from __future__ import annotations

from functools import partial

from drakit.client import CLAIMS, PODS, POOL_STATUS_REQUESTS, QUOTAS
from drakit.controllers import FinishedPods, PoolStatusController, QuotaController
from tests.scenarios.crashes import check_every_crash
from tests.scenarios.other_crashes import claims_are_counted, pods_end, pools_are_asked_for


def test_quotas() -> None:
    assert check_every_crash(claims_are_counted, (QuotaController,), (QUOTAS, CLAIMS)) >= 3


def test_pool_status() -> None:
    assert check_every_crash(pools_are_asked_for, (PoolStatusController,), (POOL_STATUS_REQUESTS,)) >= 2


def test_pods_that_ended() -> None:
    assert check_every_crash(pods_end, (partial(FinishedPods, threshold=1),), (PODS,)) >= 2
