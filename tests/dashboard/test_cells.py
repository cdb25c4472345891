"""The state of each cell of the map."""

from __future__ import annotations

from typing import Any

from drakit.dashboard.cells import device_details, map_cells
from tests.builders.explained import objects_of, running, two_nodes


def states(documents: list[dict[str, Any]]) -> dict[str, tuple[str, bool]]:
    found = map_cells(objects_of(documents)).cells.values()
    return {f"{each.pool}/{each.device}": (each.state, each.marked) for each in found}


def started(documents: list[dict[str, Any]], **status: Any) -> list[dict[str, Any]]:
    documents[-1]["status"] = {"phase": "Running", **status}
    return documents


def test_a_device_is_prepared_until_its_pod_runs_and_unhealthy_when_its_driver_says_so() -> None:
    report = {"name": "claim:g", "resources": [{"resourceID": "any", "health": "Unhealthy"}]}
    sick = [{"name": "c", "allocatedResourcesStatus": [report]}]
    assert states(two_nodes(*running("r", "node-b", "gpu-0")))["node-b/gpu-0"] == ("preparing", False)
    assert states(two_nodes(*started(running("r", "node-b", "gpu-0"))))["node-b/gpu-0"] == ("used", False)
    broken = started(running("r", "node-b", "gpu-0"), containerStatuses=sick)
    assert states(two_nodes(*broken))["node-b/gpu-0"] == ("unhealthy", False)


def test_a_taint_is_seen_on_a_device_that_is_free_and_on_one_that_is_held() -> None:
    documents = two_nodes(*started(running("r", "node-b", "gpu-0")))
    for each in documents:
        for device in each.get("spec", {}).get("devices", []) if each["kind"] == "ResourceSlice" else []:
            device["taints"] = [{"key": "broken", "effect": "NoSchedule"}]
    found = states(documents)
    assert (found["node-b/gpu-0"], found["node-a/gpu-1"]) == (("used", True), ("tainted", False))


def test_details_say_since_when_a_device_is_held() -> None:
    documents = two_nodes(*running("r", "node-b", "gpu-0"))
    claim = next(each for each in documents if each["kind"] == "ResourceClaim" and each["metadata"]["name"] == "r")
    claim["status"]["allocation"]["allocationTimestamp"] = "2026-01-01T00:00:00Z"
    cluster = objects_of(documents)
    rows = map_cells(cluster).rows
    found = device_details(cluster, rows, "gpu.example.com node-b gpu-0")
    assert found is not None
    assert [(each["claim"], each["since"]) for each in found["holders"]] == [("r", "2026-01-01T00:00:00Z")]
    assert device_details(cluster, rows, "gpu.example.com node-b gpu-9") is None
