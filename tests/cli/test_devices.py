"""`drakit devices` on saved objects and on a live server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.e2e.commands import run
from tests.e2e.processes import ROOT, apiserver, command

DEMO = str(ROOT / "examples" / "demo-cluster")


def devices(*arguments: str) -> tuple[int, str]:
    return run(command(*arguments, name="devices"))


def test_every_device_is_shown_with_its_state_and_its_holder() -> None:
    code, text = devices("-f", DEMO)
    assert code == 0
    rows = {line.split()[2]: line.split()[3:] for line in text.splitlines() if line.startswith("fabric")}
    assert rows["accelerator-0"] == ["2", "nodes", "used", "research/simulation"]
    assert "13 in all: 3 used, 9 free, 1 tainted, published as 15 devices that are alternatives in part" in text


@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        ("--tainted", {"gpu-3"}),
        ("--used", {"accelerator-0", "gpu-0", "nic-0"}),
    ],
)
def test_filters_leave_what_was_asked_for(flag: str, expected: set[str]) -> None:
    code, text = devices("-f", DEMO, flag, "-o", "json")
    assert code == 0
    assert {row["device"] for row in json.loads(text)["devices"]} == expected


def test_groups_have_their_own_totals() -> None:
    code, text = devices("-f", DEMO, "--by", "namespace", "--used")
    assert code == 0
    assert text.startswith("namespace research\n")
    assert "3 in all: 3 used, 0 free, 0 tainted" in text


def test_yaml_and_json_say_the_same() -> None:
    assert yaml.safe_load(devices("-f", DEMO, "-o", "yaml")[1]) == json.loads(devices("-f", DEMO, "-o", "json")[1])


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("-f", DEMO, "--unhealthy"), 1, "no devices of that kind"),
        (("-f", str(ROOT / "examples" / "gpu-pod.yaml")), 1, "no ResourceSlice publishes any"),
        (("-f", "nowhere.yaml"), 2, "nowhere.yaml: No such file or directory"),
        (("--master", "http://127.0.0.1:1"), 3, "127.0.0.1"),
    ],
)
def test_what_cannot_be_answered_is_one_line_and_an_exit_code(arguments: tuple[str, ...], code: int, said: str) -> None:
    found, text = devices(*arguments)
    assert found == code
    assert said in text
    assert "Traceback" not in text
    assert len(text.splitlines()) == 1


def test_a_live_cluster_is_read_by_its_kubeconfig(tmp_path: Path) -> None:
    with apiserver("--data-dir", str(tmp_path), "--nodes", "1", "--profile", "h100-8", "--gpus", "2", name="up") as up:
        code, text = devices("--kubeconfig", str(up.kubeconfig), "--by", "class", "--free", "-o", "json")
    assert code == 0
    found = json.loads(text)["devices"]
    assert [row["device"] for row in found if row["driver"] == "gpu.nvidia.com"] == ["gpu-0", "gpu-1"]
