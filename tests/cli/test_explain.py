"""`drakit explain` on saved objects: what it prints, and what it says to bad input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.builders.commandline import Ran
from tests.builders.documents import claim_document, request_of
from tests.builders.explained import two_nodes, waiting

Run = Callable[..., Ran]


@pytest.fixture
def saved(tmp_path: Path) -> str:
    """A cluster with a pod that wants two GPUs where one is free."""
    wanted = claim_document("wanted", request_of(count=2), namespace="default", uid="uid-wanted")
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all(two_nodes(wanted, waiting("p", "wanted"))))
    return str(path)


def test_a_waiting_pod_is_explained_in_sections(command_line: Run, saved: str) -> None:
    ran = command_line("explain", "pod", "p", "-f", saved)
    assert ran.code == 1
    assert ran.out.splitlines()[0].startswith("Pod default/p fits on none of 2 nodes: claim default/wanted, request r")
    assert [line for line in ran.out.splitlines() if line.endswith(":")] == [
        "Nodes:", "Requests:", "Held by others:", "It would fit with:",
    ]  # fmt: skip
    assert "  devices 3 → class 3 → selectors 3 → free 2 →" in ran.out
    assert "claim default/trainer on node-a: gpu-0, used by trainer" in ran.out
    assert "- pod default/trainer gone from node node-a" in ran.out


def test_a_running_pod_shows_its_devices_and_the_answer_is_yes(command_line: Run, saved: str) -> None:
    ran = command_line("explain", "pod/trainer", "-f", saved)
    assert ran.code == 0
    assert "trainer, request r: gpu.example.com/node-a/gpu-0" in ran.out


def test_json_and_yaml_say_the_same(command_line: Run, saved: str) -> None:
    as_json = json.loads(command_line("explain", "pod", "p", "-f", saved, "-o", "json").out)
    as_yaml = yaml.safe_load(command_line("explain", "pod", "p", "-f", saved, "-o", "yaml").out)
    assert as_json == as_yaml
    assert as_json["standing"] == "pending"
    assert as_json["requests"][0]["bestNode"] == "node-a"


@pytest.mark.parametrize("kind", ["claim", "resourceclaims"])
def test_a_claim_is_explained_under_each_of_its_names(command_line: Run, saved: str, kind: str) -> None:
    assert command_line("explain", kind, "wanted", "-f", saved).out.startswith("ResourceClaim default/wanted")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("pod", "nobody", "-f", "SAVED"), 2, 'pods "nobody" not found in namespace default'),
        (("pod", "p", "-n", "other", "-f", "SAVED"), 2, 'pods "p" not found in namespace other'),
        (("deployment", "p", "-f", "SAVED"), 2, 'cannot explain "deployment": it is pod, claim or podgroup'),
        (("pod", "-f", "SAVED"), 2, "the name of one pod is needed: drakit explain pod NAME"),
        (("pod", "p", "-f", "nowhere.yaml"), 2, "nowhere.yaml: No such file or directory"),
        (("pod", "p", "-f", "SAVED", "--watch"), 2, "--watch needs a live cluster"),
        (("pod", "p", "-f", "SAVED", "--context", "x"), 2, "-f reads saved objects"),
        (("pod", "p", "--kubeconfig", "nowhere"), 2, "there is no kubeconfig: nowhere"),
        (("pod", "p", "--master", "http://127.0.0.1:1"), 3, "Cannot connect"),
        (("pod", "p"), 3, "no cluster: there is no kubeconfig"),
    ],
)
def test_what_cannot_be_explained_is_one_line_and_an_exit_code(
    command_line: Run, saved: str, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], code: int, said: str
) -> None:
    monkeypatch.setenv("HOME", "/nowhere")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    ran = command_line("explain", *(saved if word == "SAVED" else word for word in words))
    assert ran.code == code
    assert said in ran.err
    assert (len(ran.err.splitlines()), ran.out) == (1, "")


def test_text_that_is_no_yaml_is_told_with_its_line(command_line: Run) -> None:
    ran = command_line("explain", "pod", "p", "-f", "-", typed="kind: Pod\n  name: [")
    assert ran.code == 2
    assert "standard input: line 2" in ran.err
    assert "Traceback" not in ran.err
