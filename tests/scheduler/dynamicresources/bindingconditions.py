"""Scenes and objects for the tests of bindingconditions, here and elsewhere."""

from __future__ import annotations

from drakit.client import CLAIMS
from tests.builders.documents import DRIVER
from tests.builders.schedulercluster import SchedulingCluster
from tests.scheduler.dynamicresources.scenes import (
    Plain,
)


def attachable(name: str) -> Plain:
    return {
        "name": name,
        "bindsToNode": True,
        "bindingConditions": ["Attached", "Booted"],
        "bindingFailureConditions": ["AttachFailed"],
    }


def condition(type_: str, status: str = "True") -> Plain:
    return {
        "type": type_,
        "status": status,
        "reason": "R",
        "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


async def report(it: SchedulingCluster, *conditions: Plain, device: str = "d0", name: str = "c") -> None:
    status = {"driver": DRIVER, "pool": "pool", "device": device, "conditions": list(conditions)}
    await it.set_status(CLAIMS, name, {"devices": [status]})
