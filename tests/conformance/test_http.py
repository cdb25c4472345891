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


FLAGS = ("--token-auth-file", str(TOKENS), "--feature-gates", "AllAlpha=true,AllBeta=true")


@pytest.fixture(scope="module")
def in_memory() -> Iterator[Running]:
    with apiserver("--ephemeral", *FLAGS) as running:
        yield running


@pytest.fixture(scope="module")
def on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with apiserver("--data-dir", str(tmp_path_factory.mktemp("data")), *FLAGS) as running:
        yield running


@pytest.fixture(scope="module")
def on_etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with (
        etcd_cluster(tmp_path_factory.mktemp("etcd")) as (member,),
        apiserver("--ephemeral", *FLAGS, "--etcd-servers", member.client) as running,
    ):
        yield running


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorded cases, unpacked: `replay.py` reads plain files."""
    directory = tmp_path_factory.mktemp("cases")
    for packed in (HERE / "data" / "api").glob("*.jsonl.gz"):
        (directory / packed.stem).write_bytes(gzip.decompress(packed.read_bytes()))
    return directory


def answers_alike(server: Running, cases: Path, group: str, directory: Path) -> None:
    results = directory / "results.jsonl"
    replay = [sys.executable, str(HERE / "replay.py"), "--base-url", server.url, "--tokens", str(TOKENS)]
    subprocess.run(
        [*replay, "--cases", str(cases), "--group", group, "--out", str(results), "--show", "0"],
        check=False,
        capture_output=True,
        timeout=550,
    )
    outcomes = [json.loads(line) for line in results.read_text().splitlines()]
    assert outcomes
    assert {each["id"]: each["why"] for each in outcomes if not each["ok"]} == {}


# Not one test over a parameter: each engine has one server for all groups.


@pytest.mark.timeout(600)
@pytest.mark.parametrize("group", GROUPS)
def test_in_memory_every_recorded_case_is_answered_alike(
    in_memory: Running, cases: Path, group: str, tmp_path: Path
) -> None:
    answers_alike(in_memory, cases, group, tmp_path)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("group", GROUPS)
def test_on_sqlite_every_recorded_case_is_answered_alike(
    on_sqlite: Running, cases: Path, group: str, tmp_path: Path
) -> None:
    answers_alike(on_sqlite, cases, group, tmp_path)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("group", GROUPS)
def test_on_etcd_every_recorded_case_is_answered_alike(
    on_etcd: Running, cases: Path, group: str, tmp_path: Path
) -> None:
    answers_alike(on_etcd, cases, group, tmp_path)


def test_no_recorded_group_is_left_out(cases: Path) -> None:
    recorded = {json.loads(line)["group"] for file in cases.glob("*.jsonl") for line in file.read_text().splitlines()}
    assert {group for group in recorded if not group.startswith(GROUPS)} == set()
