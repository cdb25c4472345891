"""Snapshots are read like any file, with what the scheduler had decided counted in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from drakit.api import Pod, ResourceClaim
from drakit.manifests import Manifests, load_manifests
from tests.builders.explained import two_nodes, waiting
from tests.builders.manifests import allocation, claim


def read(tmp_path: Path, **state: Any) -> Manifests:
    wanted = claim("wanted", uid="uid-wanted")
    items = [*two_nodes(wanted, waiting("p", "wanted"))]
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps({"apiVersion": "drakit/v1", "kind": "Snapshot", "items": items, **state}))
    found = load_manifests([path])
    assert found.problems == ()
    return found


def named(found: Manifests, kind: Any, name: str) -> Any:
    [each] = [one for one in found.of(kind) if one.metadata.name == name]
    return each


def test_the_objects_of_a_snapshot_are_those_of_its_items(tmp_path: Path) -> None:
    found = read(tmp_path)
    assert {each.metadata.name for each in found.of(Pod)} == {"trainer", "p"}
    assert named(found, ResourceClaim, "wanted").status.allocation is None


def test_allocations_in_flight_and_pods_on_their_way_count(tmp_path: Path) -> None:
    flight = {"namespace": "default", "claim": "wanted", "uid": "uid-wanted", "allocation": allocation("gpu-1")}
    assumed = {"namespace": "default", "name": "p", "uid": "uid-p", "nodeName": "node-a"}
    found = read(tmp_path, scheduler={"inFlight": [flight], "assumedPods": [assumed]})
    assert named(found, ResourceClaim, "wanted").status.allocation.devices.results[0].device == "gpu-1"
    assert named(found, Pod, "p").spec.node_name == "node-a"
    held = named(found, ResourceClaim, "trainer").status.allocation
    assert held.devices.results[0].device == "gpu-0"


def test_a_state_that_is_none_and_items_that_are_none_are_borne(tmp_path: Path) -> None:
    read(tmp_path, scheduler="gone")
    read(tmp_path, scheduler={"inFlight": 3, "assumedPods": [None]})
    path = tmp_path / "empty.json"
    path.write_text(json.dumps({"apiVersion": "drakit/v1", "kind": "Snapshot"}))
    assert load_manifests([path]).objects == ()
