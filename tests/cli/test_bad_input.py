"""Bad input for each tool: one line that says what is wrong, the right exit code, nothing on standard output."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders.commandline import Ran
from tests.docs.blocks import ROOT

Run = Callable[..., Ran]
SAVED = ("-f", str(ROOT / "examples" / "demo-cluster"))
FILE_TOOLS = {
    "explain": ("explain", "pod", "p"),
    "devices": ("devices",),
    "selector": ("selector", "true"),
    "whatif": ("whatif",),
    "allocate": ("allocate",),
    "lint": ("lint",),
    "top": ("top",),
}
LIVE_TOOLS = {
    **{name: words for name, words in FILE_TOOLS.items() if name not in ("allocate", "lint")},
    "snapshot": ("snapshot",),
    "explain --watch": ("explain", "pod", "p", "--watch"),
    "devices --watch": ("devices", "--watch"),
}
pytestmark = pytest.mark.usefixtures("terminal")
READERS = pytest.mark.parametrize("words", FILE_TOOLS.values(), ids=FILE_TOOLS)
ASKERS = pytest.mark.parametrize("words", LIVE_TOOLS.values(), ids=LIVE_TOOLS)
NO_YAML = "a: [1\nb: }\n"
NO_CLASS = "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: UPPER}\nspec: {}\n"


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No kubeconfig is to be found."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


def refused(ran: Ran, code: int, said: str) -> None:
    assert said in ran.err
    assert (ran.code, ran.out) == (code, "")
    [line] = ran.err.splitlines()
    assert line.startswith("error: ")


@READERS
def test_a_file_that_is_missing(command_line: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    path = tmp_path / "nothing.yaml"
    refused(command_line(*words, "-f", str(path)), 2, f"{path}: No such file or directory")


@READERS
def test_a_file_that_is_no_yaml(command_line: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(NO_YAML)
    refused(command_line(*words, "-f", str(path)), 2, f"{path}: line 2, column 2: ")


@pytest.mark.parametrize("words", [words for name, words in FILE_TOOLS.items() if name != "lint"])
def test_an_object_that_no_server_would_take(command_line: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    path = tmp_path / "invalid.yaml"
    path.write_text(NO_CLASS)
    refused(command_line(*words, "-f", str(path)), 2, 'DeviceClass UPPER: metadata.name: Invalid value: "UPPER"')


@ASKERS
def test_no_kubeconfig_at_all(command_line: Run, words: tuple[str, ...]) -> None:
    refused(command_line(*words), 3, "no cluster: there is no kubeconfig")


@ASKERS
def test_a_kubeconfig_that_is_missing(command_line: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    path = tmp_path / "missing"
    refused(command_line(*words, "--kubeconfig", str(path)), 2, f"there is no kubeconfig: {path}")


@ASKERS
def test_a_kubeconfig_that_is_no_yaml(command_line: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    path = tmp_path / "broken"
    path.write_text(NO_YAML)
    refused(command_line(*words, "--kubeconfig", str(path)), 2, f"{path}: line 2, column 2: ")


@ASKERS
def test_a_server_that_does_not_answer(command_line: Run, words: tuple[str, ...]) -> None:
    """Nobody listens on port 1."""
    refused(command_line(*words, "--master", "http://127.0.0.1:1"), 3, "Cannot connect to host 127.0.0.1:1")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("explain", "pod", "nope"), 'pods "nope" not found in namespace default'),
        (("explain", "claim", "nope", "-n", "there"), 'resourceclaims "nope" not found in namespace there'),
        (("explain", "podgroup", "nope"), 'podgroups.scheduling.k8s.io "nope" not found in namespace default'),
        (("explain", "node", "node-a"), 'cannot explain "node": it is pod, claim or podgroup'),
        (("explain", "pod"), "the name of one pod is needed"),
        (("explain", "pod", "p", "--watch"), "--watch needs a live cluster"),
        (("devices", "--watch"), "--watch needs a live cluster"),
        (("devices", "--kubeconfig", "k"), "--kubeconfig, --context and --master do not go with it"),
        (("selector", "true", "--class", "nope"), 'deviceclasses.resource.k8s.io "nope" not found'),
        (("selector", "true", "--device", "nope"), 'device "nope": no ResourceSlice has one of that name'),
        (("whatif", "--drain", "nope"), 'nodes "nope" not found'),
        (("whatif", "--remove-node", "nope"), 'nodes "nope" not found'),
        (("whatif", "--evict", "nope"), 'pods "nope" not found in namespace default'),
        (("whatif", "--taint", "nope"), 'device "nope": there is none'),
        (("whatif", "--add-node", "nope=1"), '"nope" is no node of the cluster, no file, and no device profile'),
        (("whatif", "--add-node", "node-a=x"), "--add-node node-a=x: expected TEMPLATE=N"),
        (("whatif", "--smallest", "nope"), '"nope" is no node of the cluster, no file, and no device profile'),
        (("whatif", "--pods", "nope.yaml"), "nope.yaml: No such file or directory"),
        (("whatif", "--class", "nope.yaml"), "nope.yaml: No such file or directory"),
        (("allocate", "--node", "nope"), "--node nope: no such node in the files"),
        (("allocate", "--feature-gates", "Nope=true"), "Nope"),
        (("lint", "--feature-gates", "Nope=true"), "Nope"),
    ],
)
def test_what_is_not_there_is_named(command_line: Run, words: tuple[str, ...], said: str) -> None:
    refused(command_line(*words, *SAVED), 2, said)


@pytest.mark.parametrize("words", [("snapshot", "-o", "wide"), ("snapshot", "--master", "nope")])
def test_a_snapshot_with_wrong_flags(command_line: Run, words: tuple[str, ...]) -> None:
    refused(command_line(*words), 2, words[-1])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("explain", "pod", "large"), "Pod default/large fits on none of 3 nodes"),
        (("selector", 'device.driver == "none"'), "0 of 15 devices match"),
        (("whatif",), "default/large stays pending"),
    ],
)
def test_an_answer_that_is_no_is_no_error(command_line: Run, words: tuple[str, ...], said: str) -> None:
    ran = command_line(*words, *SAVED, "-f", str(ROOT / "docs" / "guides" / "pending-pods.yaml"))
    assert said in ran.out
    assert (ran.code, ran.err) == (1, "")


@pytest.mark.parametrize("words", [("devices",), ("devices", "-o", "json"), ("selector", "true")])
def test_a_reader_that_has_seen_enough_is_no_error(words: tuple[str, ...]) -> None:
    """As in `drakit devices | head -1`: the pipe is closed before the first line."""
    line = [sys.executable, "-m", "drakit", *words, *SAVED]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 0
