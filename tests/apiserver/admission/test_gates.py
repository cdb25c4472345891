"""Fields of features that are off, in the server: gone from what is new, kept in what is stored."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from drakit.apiserver import Settings, build_server
from drakit.base.clock import FakeClock
from drakit.base.gates import FeatureGates
from drakit.store import MemoryStore
from tests.apiserver.calls import CLAIMS, CLASSES, PODS, SLICES, Api, on_loop
from tests.builders.documents import claim_document, class_document, pod_document, slice_document

Plain = dict[str, Any]
ON = FeatureGates.all_on()
TAINT = {"key": "k", "effect": "NoSchedule", "timeAdded": "2026-01-02T03:04:05Z"}


@asynccontextmanager
async def before_and_after(gate: str) -> AsyncIterator[tuple[Api, Api]]:
    """Two servers of one store: one with every feature, one without this one."""
    clock = FakeClock()
    async with MemoryStore(clock=clock) as store:
        both = [
            Api(await build_server(store, clock=clock, settings=Settings(gates=gates)), clock)
            for gates in (ON, FeatureGates(ON.on - {gate}))
        ]
        yield both[0], both[1]


def asking(**exactly: Any) -> Plain:
    made = claim_document("it")
    made["spec"]["devices"]["requests"][0]["exactly"] |= exactly
    return made


def offering(**device: Any) -> Plain:
    made = slice_document("it", "dev-0")
    made["spec"]["devices"][0] |= device
    return made


def grouped() -> Plain:
    return pod_document("it", {"schedulingGroup": {"podGroupName": "g"}})


FIELDS: list[tuple[str, str, Plain, tuple[str | int, ...]]] = [
    (
        "DRADeviceTaints",
        CLAIMS,
        asking(tolerations=[{"operator": "Exists"}]),
        ("spec", "devices", "requests", 0, "exactly", "tolerations"),
    ),
    (
        "DRAConsumableCapacity",
        CLAIMS,
        asking(capacity={"requests": {"m": "1"}}),
        ("spec", "devices", "requests", 0, "exactly", "capacity"),
    ),
    ("DRADeviceTaints", SLICES, offering(taints=[TAINT]), ("spec", "devices", 0, "taints")),
    (
        "DRAConsumableCapacity",
        SLICES,
        offering(allowMultipleAllocations=True),
        ("spec", "devices", 0, "allowMultipleAllocations"),
    ),
    (
        "DRANodeAllocatableResources",
        SLICES,
        offering(nodeAllocatableResourceMappings={"cpu": {"allocationMultiplier": "2"}}),
        ("spec", "devices", 0, "nodeAllocatableResourceMappings"),
    ),
    ("DRADeviceBindingConditions", SLICES, offering(bindsToNode=True), ("spec", "devices", 0, "bindsToNode")),
    (
        "DRAExtendedResource",
        CLASSES,
        {**class_document("it", "true"), "spec": {"extendedResourceName": "a.b/c"}},
        ("spec", "extendedResourceName"),
    ),
    ("GenericWorkload", PODS, grouped(), ("spec", "schedulingGroup")),
]


def reached(document: Plain, path: tuple[str | int, ...]) -> Any:
    found: Any = document
    for part in path[:-1]:
        found = found[part]
    return found.get(path[-1])


@pytest.mark.parametrize(("gate", "place", "sent", "path"), FIELDS, ids=[f"{each[0]}-{each[3][-1]}" for each in FIELDS])
def test_a_field_whose_gate_is_off_is_not_stored_and_one_that_is_stored_stays(
    gate: str, place: str, sent: Plain, path: tuple[str | int, ...]
) -> None:
    @on_loop
    async def run() -> None:
        async with before_and_after(gate) as (on, off):
            new = await off.create(place, {**sent, "metadata": {"name": "new"}})
            assert (new.code, reached(new.body, path)) == (201, None)
            stored = await on.create(place, sent)
            assert (stored.code, reached(stored.body, path)) == (201, reached(sent, path))
            labelled = {**stored.body, "metadata": {**stored.body["metadata"], "labels": {"a": "b"}}}
            updated = await off.update(f"{place}/it", labelled)
            assert (updated.code, reached(updated.body, path)) == (200, reached(sent, path))

    run()


@on_loop
async def test_reports_about_devices_need_their_gate_unless_there_are_some() -> None:
    result = {"request": "r", "driver": "gpu.example.com", "pool": "p", "device": "d"}
    report = {"driver": "gpu.example.com", "pool": "p", "device": "d"}
    status = {"status": {"allocation": {"devices": {"results": [result]}}, "devices": [report]}}
    async with before_and_after("DRAResourceClaimDeviceStatus") as (on, off):
        for name in ("new", "old"):
            await on.create(CLAIMS, claim_document(name))
        dropped = await off.patch(f"{CLAIMS}/new/status", status)
        assert (dropped.code, "devices" in dropped.body["status"]) == (200, False)
        assert (await on.patch(f"{CLAIMS}/old/status", status)).code == 200
        more = {"status": {"devices": [{**report, "data": {"a": 1}}]}}
        kept = await off.patch(f"{CLAIMS}/old/status", more)
        assert kept.body["status"]["devices"][0]["data"] == {"a": 1}
