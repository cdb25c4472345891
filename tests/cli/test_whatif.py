"""`drakit whatif`: its flags, its tables, its exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.builders.commandline import Ran
from tests.builders.manifests import by_template, template
from tests.docs.blocks import ROOT

Run = Callable[..., Ran]
DEMO = ("-f", str(ROOT / "examples" / "demo-cluster"))
PODS = str(ROOT / "docs" / "guides" / "pending-pods.yaml")


def test_pods_are_told_with_node_and_devices_and_the_rest_with_its_reason(command_line: Run) -> None:
    ran = command_line("whatif", *DEMO, "--pods", PODS)
    assert ran.code == 1
    assert "default/large stays pending: 0/3 nodes are available: 3 cannot allocate all claims." in ran.out
    assert "1 placed, 1 pending" in ran.out
    assert [line.split() for line in ran.out.splitlines() if line.startswith("devices used")] == [
        ["devices", "used", "3/13", "4/13"]
    ]


def test_a_profile_is_a_kind_of_node_and_so_is_a_file(command_line: Run, tmp_path: Path) -> None:
    ran = command_line("whatif", *DEMO, "--add-node", "h100-8=2", "-o", "json")
    assert json.loads(ran.out)["added"] == ["h100-8-new-1", "h100-8-new-2"]
    path = tmp_path / "kind.yaml"
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "bare"}}))
    ran = command_line("whatif", *DEMO, "--add-node", f"{path}=1", "-o", "json")
    assert json.loads(ran.out)["after"]["nodes"] == 4


def test_a_deployment_stands_for_its_pods(command_line: Run, tmp_path: Path) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}], "resourceClaims": [by_template()]}
    deployment = {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "replicas": 3, "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": spec},
        },
    }  # fmt: skip
    path = tmp_path / "web.yaml"
    path.write_text(yaml.safe_dump_all([deployment, template(device_class="gpu")]))
    found = json.loads(command_line("whatif", *DEMO, "--pods", str(path), "-o", "json").out)
    assert [each["name"] for each in found["placed"]] == ["web-0", "web-1", "web-2"]


def test_the_fewest_nodes_are_told_first(command_line: Run) -> None:
    ran = command_line(
        "whatif", *DEMO, "--pods", PODS, "--smallest", "node-b", "--drain", "node-b", "--drain", "node-a"
    )
    assert ran.out.startswith("1 more like node-b are enough for everything that can fit; 1 fit on no number of them")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((*DEMO, "--drain", "nope"), 2, 'nodes "nope" not found'),
        ((*DEMO, "--remove-node", "nope"), 2, 'nodes "nope" not found'),
        ((*DEMO, "--evict", "nope"), 2, 'pods "nope" not found'),
        ((*DEMO, "--add-node", "nope=2"), 2, "no node of the cluster, no file, and no device profile"),
        ((*DEMO, "--add-node", "node-a=x"), 2, "expected TEMPLATE=N"),
        ((*DEMO, "--taint", "nope"), 2, 'device "nope": there is none'),
        ((*DEMO, "--pods", "nowhere.yaml"), 2, "No such file"),
        (("-f", "nowhere.yaml"), 2, "No such file"),
        (("--master", "http://127.0.0.1:1"), 3, "Cannot connect"),
    ],
)
def test_what_cannot_be_asked_is_one_line_and_an_exit_code(
    command_line: Run, words: tuple[str, ...], code: int, said: str
) -> None:
    ran = command_line("whatif", *words)
    assert ran.code == code
    assert said in ran.err
    assert (len(ran.err.splitlines()), ran.out) == (1, "")
