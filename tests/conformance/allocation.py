"""Compare the allocator with recorded answers of Kubernetes: `python -m tests.conformance.allocation FILE…`.

In:  files of cases: gates, node, slices, classes, claims in use, claims to allocate, and the recorded answer.
Out: `agree N of M` and the ids that differ; exit code 1 when any does.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from drakit.allocator import Allocated, Allocation, AllocationError, Inventory, NodeError, Unsatisfiable, allocate
from drakit.api import DeviceClass, Node, ResourceClaim, ResourceSlice, from_plain, to_plain
from drakit.base.gates import FeatureGates
from drakit.base.quantity import Quantity
from tests.conformance.vectors import Case, read_vectors, report

DATA = Path(__file__).parent / "data" / "allocation.jsonl.gz"
ANY_UID = "<uid>"
OUTCOMES = {Unsatisfiable: "none", NodeError: "node-error", AllocationError: "error"}


def inventory_from(case: Case) -> Inventory:
    needed = ("DynamicResourceAllocation", "DRAResourceClaimDeviceStatus")
    inventory = Inventory(FeatureGates.only([*case["featureGates"], *needed]))
    inventory.put_node(from_plain(Node, case["node"]))
    for each in case["slices"]:
        inventory.put_slice(from_plain(ResourceSlice, each))
    for each in case["classes"]:
        inventory.put_class(from_plain(DeviceClass, each))
    for each in case["allocatedClaims"]:
        inventory.put_claim(from_plain(ResourceClaim, each))
    return inventory


def run_case(case: Case) -> Allocation:
    claims = [from_plain(ResourceClaim, each) for each in case["claims"]]
    return allocate(inventory_from(case), case["node"]["metadata"]["name"], claims, new_uid=lambda: ANY_UID)


def difference(case: Case) -> str | None:
    """What differs from the recorded answer, if anything does."""
    got, expected = run_case(case), case["expect"]
    if not isinstance(got, Allocated):
        outcome = OUTCOMES.get(type(got), "none")
        return None if outcome == expected["outcome"] else f"{outcome} ({got}) instead of {expected['outcome']}"
    if expected["outcome"] != "allocated":
        return f"allocated instead of {expected['outcome']}"
    ours = [_comparable(to_plain(each)) for each in got.allocations]
    theirs = [_comparable(each) for each in expected["allocations"]]
    return None if ours == theirs else f"{ours} instead of {theirs}"


def _comparable(allocation: dict[str, Any]) -> dict[str, Any]:
    """Quantities as amounts, any share id as one, empty lists as absent."""
    devices = allocation.get("devices", {})
    results = []
    for result in devices.get("results", []):
        plain = {key: value for key, value in result.items() if value not in ([], {}, None)}
        if "consumedCapacity" in plain:
            plain["consumedCapacity"] = {k: Quantity.parse(str(v)) for k, v in plain["consumedCapacity"].items()}
        if "shareID" in plain:
            plain["shareID"] = ANY_UID
        results.append(plain)
    return {
        "results": results,
        "config": devices.get("config") or [],
        "nodeSelector": allocation.get("nodeSelector"),
        "rest": sorted(set(allocation) - {"devices", "nodeSelector"}),
    }


def main(files: Sequence[str]) -> int:
    return report(read_vectors(files or [str(DATA)]), lambda case: difference(case) is None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
