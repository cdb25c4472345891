"""`drakit demo`: every scene runs, the containers themselves tell which devices they got, and a kill does not end it.

The transcript is a golden file: `DRAKIT_UPDATE_TRANSCRIPTS=1` writes it anew.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from drakit.cli.commands.demo.scenes import SCENES
from drakit.nodeagent.runtimes.shim.kernel import start_time
from tests.e2e.processes import ROOT

GOLDEN = Path(__file__).with_name("transcripts") / "demo.txt"
VOLATILE = (
    (re.compile(r"-[a-z0-9]{9,10}-[a-z0-9]{5} on "), "-<hash> on "),
    (re.compile(r"node-\d"), "node-N"),
    (re.compile(r"((?:steady|legacy)-<hash> on node-N: GPU_DEVICE_0=|node-N/)gpu-\d"), r"\1<card>"),
    (re.compile(r"quarter-\d"), "quarter-<n>"),
    (re.compile(r"process \d+; .*\)"), "process <pid>; look on with kubectl --kubeconfig <file>)"),
    (re.compile(r"10\.88\.\d+\.\d+"), "<address>"),
    (re.compile(r"in \d+ s"), "in <time>"),
)
"""What differs from run to run: names that are made, which of several that fit, addresses, times."""

DEMO = [sys.executable, "-m", "drakit", "demo"]


@pytest.fixture(scope="module")
def transcript() -> str:
    done = subprocess.run(DEMO, capture_output=True, text=True, cwd=ROOT, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def masked(text: str) -> str:
    for pattern, mask in VOLATILE:
        text = pattern.sub(mask, text)
    return text


@pytest.mark.timeout(320)
def test_the_transcript_is_the_one_that_was_reviewed(transcript: str) -> None:
    if os.environ.get("DRAKIT_UPDATE_TRANSCRIPTS"):
        GOLDEN.write_text(masked(transcript))
    assert masked(transcript) == GOLDEN.read_text()


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_each_scene_is_told_with_what_came_of_it(transcript: str, scene: object) -> None:
    name = scene.name  # type: ignore[attr-defined]
    told = re.search(rf"^{name} .*\n((?: {{20}}.*\n)+)", transcript, re.MULTILINE)
    assert told is not None
    assert "FAILED" not in told[1]
    assert name == "does-not-fit" or re.search(r" on node-\d: [A-Z_0-9]+=\S+", told[1])


@pytest.mark.parametrize(
    ("names", "same"), [(("first", "second"), True), (("small-a", "small-b"), False), (("worker-0", "worker-1"), True)]
)
def test_pods_share_a_device_or_have_one_each(transcript: str, names: tuple[str, str], same: bool) -> None:
    found = [re.search(rf" {name} on (\S+): GPU_DEVICE_0=(\S+)", transcript) for name in names]
    [first, second] = [each.groups() for each in found if each is not None]
    assert first[0] == second[0]
    assert (first[1] == second[1]) is same


@pytest.mark.timeout(320)
def test_the_demo_is_finished_although_the_cluster_is_killed_in_the_middle() -> None:
    with subprocess.Popen(DEMO, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        lines: list[str] = []
        cluster = 0
        for line in process.stdout or ():
            lines.append(line)
            if (found := re.search(r"^\(process (\d+);", line)) is not None:
                cluster = int(found[1])
            # The scene is told before it is played: the cluster is killed while it is.
            if line.startswith("shared-claim") and start_time(cluster):
                os.kill(cluster, signal.SIGKILL)
                cluster = 0
        assert process.wait() == 0, "".join(lines)
    assert "(drakit up has ended with -9: it is started again)\n" in lines
    assert f"{len(SCENES)} of {len(SCENES)} scenes ran" in lines[-1]
