"""The eviction of pods dies after every single write: each pod goes once, each is told of at least once."""

from __future__ import annotations

from drakit.client import CLAIMS, PODS
from drakit.controllers.eviction import DeviceTaintEviction
from tests.scenarios.crashes import check_every_crash
from tests.scenarios.eviction_crashes import taints_come


def test_pods_that_go_at_once_and_later() -> None:
    # The rule's own status is left out: it counts what went since the controller was started.
    assert check_every_crash(taints_come, (DeviceTaintEviction,), (PODS, CLAIMS), apart=("devicetaintrules",)) >= 6
