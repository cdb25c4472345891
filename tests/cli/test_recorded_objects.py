"""The tools on objects that a real kube-apiserver has written: what it says of pods and devices is what they find."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from drakit.api.text.yamldump import dump_yaml
from drakit.cli.commands.top import saved_feed
from drakit.cli.commands.top.screen import CardState, ScreenFilter, screen_content
from drakit.manifests.snapshots import API_VERSION, KIND
from tests.builders.commandline import Ran
from tests.builders.manifests import node
from tests.conformance.flows import flow

Run = Callable[..., Ran]
VERSIONS = {
    "Pod": "v1",
    "ResourceClaim": "resource.k8s.io/v1",
    "PodGroup": "scheduling.k8s.io/v1alpha2",
    "DeviceTaintRule": "resource.k8s.io/v1beta2",
}
GIVEN = ("DeviceClass", "ResourceSlice", "ResourceClaimTemplate")
"""Kinds that a flow creates and does not record again."""


def recorded(name: str) -> Iterator[dict[str, Any]]:
    """A node, what the flow created, and the objects at its end as the server returned them."""
    found = flow(name)
    yield {**node("node-1"), "status": {"allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"}}}
    for step in found["steps"]:
        if step["do"] == "create" and step["manifest"]["kind"] in GIVEN:
            yield step["manifest"]
    for kind, objects in found["final"]["objects"].items():
        for each in objects:
            yield {"apiVersion": VERSIONS[kind], "kind": kind, **each}


def _filled(value: Any) -> Any:
    """Times and uids were taken out of the recording: any will do, the same for the same."""
    if isinstance(value, dict):
        return {key: _filled(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each) for each in value]
    if isinstance(value, str) and (found := re.fullmatch(r"<uid-(\d+)>", value)):
        return str(UUID(int=int(found[1])))
    return "2026-01-01T00:00:00Z" if value == "<time>" else value


@pytest.fixture(params=["saved", "snapshot"])
def saved(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], tuple[str, str]]:
    """A flow's objects in a file, as `-f` takes it: one document each, or a snapshot."""

    def write(name: str) -> tuple[str, str]:
        path = tmp_path / f"{name}.yaml"
        objects = [_filled(each) for each in recorded(name)]
        whole = {"apiVersion": API_VERSION, "kind": KIND, "items": objects}
        path.write_text("---\n".join(map(dump_yaml, objects if request.param == "saved" else [whole])))
        return "-f", str(path)

    return write


Saved = Callable[[str], tuple[str, str]]


def test_devices_of_partitions_that_a_real_scheduler_gave(command_line: Run, saved: Saved) -> None:
    ran = command_line("devices", *saved("flow-20"), "-o", "json")
    assert (ran.code, ran.err) == (0, "")
    rows = json.loads(ran.out)["devices"]
    held = {row["device"]: [each["claim"] for each in row["holders"]] for row in rows if row["holders"]}
    assert held == {each["device"]: [claim] for claim, results in _allocated("flow-20").items() for each in results}
    assert (len(rows), len(held)) == (3, 2)


def _allocated(name: str) -> dict[str, list[dict[str, Any]]]:
    claims = flow(name)["final"]["objects"]["ResourceClaim"]
    found = {each["metadata"]["name"]: (each.get("status") or {}).get("allocation") for each in claims}
    return {claim: each["devices"]["results"] for claim, each in found.items() if each}


@pytest.mark.parametrize("name", ["flow-20", "flow-21"])
def test_the_pod_that_a_real_scheduler_refused_is_refused_here(command_line: Run, saved: Saved, name: str) -> None:
    files, namespace = saved(name), name.replace("flow-", "f")
    pods = flow(name)["final"]["objects"]["Pod"]
    [waiting] = [each["metadata"]["name"] for each in pods if "nodeName" not in each["spec"]]
    ran = command_line("explain", "pod", waiting, "-n", namespace, *files)
    assert (ran.code, ran.err) == (1, "")
    assert f"Pod {namespace}/{waiting} fits on none of 1 node: " in ran.out
    ran = command_line("whatif", *files)
    assert (ran.code, ran.err) == (1, "")
    assert f"{namespace}/{waiting} stays pending" in ran.out


@pytest.mark.parametrize("name", ["flow-07", "flow-14", "flow-50"])
def test_a_pod_that_a_real_scheduler_placed_has_its_devices_here(command_line: Run, saved: Saved, name: str) -> None:
    files, namespace = saved(name), name.replace("flow-", "f")
    for each in flow(name)["final"]["objects"]["Pod"]:
        ran = command_line("explain", "pod", each["metadata"]["name"], "-n", namespace, *files, "-o", "json")
        assert (ran.code, ran.err) == (0, "")
        assert json.loads(ran.out)["devices"]


def test_a_selector_reads_the_devices_of_a_real_server(command_line: Run, saved: Saved) -> None:
    ran = command_line("selector", 'device.driver == "drv20.example.com"', *saved("flow-20"))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("3 of 3 devices match")


@pytest.mark.parametrize(("name", "code", "said"), [
    ("flow-07", 0, "every claim has an allocation"),
    ("flow-20", 1, "not all devices are available"),
    ("flow-21", 1, "not all devices are available"),
])  # fmt: skip
def test_what_a_real_scheduler_could_not_allocate_is_not_allocated_here(
    command_line: Run, saved: Saved, name: str, code: int, said: str
) -> None:
    """And what it has given away already is not given a second time."""
    ran = command_line("allocate", *saved(name))
    assert said in ran.out + ran.err
    assert ran.code == code


@pytest.mark.parametrize("name", ["flow-07", "flow-14", "flow-20", "flow-21", "flow-50"])
def test_lint_finds_nothing_wrong_with_what_a_real_server_has_stored(
    command_line: Run, saved: Saved, name: str
) -> None:
    ran = command_line("lint", *saved(name))
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.endswith(": 0 errors, 0 warnings\n")


def test_top_shows_the_partitions_and_the_waiting_pod_of_a_real_cluster(saved: Saved) -> None:
    feed = saved_feed([saved("flow-20")[1]])
    found = screen_content(feed.objects(), feed.events(), ScreenFilter())
    assert [(row.node, [card.state for card in row.cards]) for row in found.rows] == [("node-1", [CardState.USED])]
    pods = flow("flow-20")["final"]["objects"]["Pod"]
    assert [each.name for each in found.waiting] == [
        each["metadata"]["name"] for each in pods if "nodeName" not in each["spec"]
    ]
    assert "fits on none of 1 node" in found.waiting[0].reason
