"""The server answers as the recorded one did: `replay.py` over a real socket, all cases of all groups."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders.etcd import etcd_cluster
from tests.e2e.processes import Running, apiserver

HERE = Path(__file__).parent
TOKENS = HERE / "data" / "tokens.csv"
KINDS = (
    *("DeviceClass", "DeviceTaintRule", "Pod", "PodGroup", "ResourceClaim", "ResourceClaimTemplate"),
    *("ResourcePoolStatusRequest", "ResourceSlice", "Workload"),
)
GROUPS = (
    *(
        "authz",
        "concurrency",
        "conversion",
        "defaulting",
        "discovery",
        "listwatch",
        "patch",
        "quota",
        "table",
        "update",
    ),
    *(f"validation/{kind}" for kind in KINDS),
)


STORED = ("concurrency", "listwatch", "patch", "quota", "table", "update")
"""Groups whose answers depend on the engine: they run on each."""


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    flags = ("--ephemeral", "--token-auth-file", str(TOKENS), "--feature-gates", "AllAlpha=true,AllBeta=true")
    if request.param == "memory":
        with apiserver(*flags) as running:
            yield running
        return
    with (
        etcd_cluster(tmp_path_factory.mktemp("etcd")) as (member,),
        apiserver(*flags, "--etcd-servers", member.client) as running,
    ):
        yield running


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorded cases, unpacked: `replay.py` reads plain files."""
    directory = tmp_path_factory.mktemp("cases")
    for packed in (HERE / "data" / "api").glob("*.jsonl.gz"):
        (directory / packed.stem).write_bytes(gzip.decompress(packed.read_bytes()))
    return directory


@pytest.mark.parametrize(
    ("server", "group"),
    [*(("memory", group) for group in GROUPS), *(("etcd", group) for group in STORED)],
    indirect=["server"],
)
def test_every_recorded_case_of_a_group_is_answered_alike(
    server: Running, cases: Path, group: str, tmp_path: Path
) -> None:
    results = tmp_path / "results.jsonl"
    replay = [sys.executable, str(HERE / "replay.py"), "--base-url", server.url, "--tokens", str(TOKENS)]
    subprocess.run(
        [*replay, "--cases", str(cases), "--group", group, "--out", str(results), "--show", "0"],
        check=False,
        capture_output=True,
        timeout=100,
    )
    outcomes = [json.loads(line) for line in results.read_text().splitlines()]
    assert outcomes
    assert {each["id"]: each["why"] for each in outcomes if not each["ok"]} == {}


def test_no_recorded_group_is_left_out(cases: Path) -> None:
    recorded = {json.loads(line)["group"] for file in cases.glob("*.jsonl") for line in file.read_text().splitlines()}
    assert {group for group in recorded if not group.startswith(GROUPS)} == set()
