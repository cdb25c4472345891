"""`drakit demo`: every scene runs, and the containers themselves tell which devices they got."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from drakit.cli.commands.demo.scenes import SCENES
from tests.e2e.processes import ROOT


@pytest.fixture(scope="module")
def transcript() -> str:
    done = subprocess.run(
        [sys.executable, "-m", "drakit", "demo"], capture_output=True, text=True, cwd=ROOT, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.timeout(320)
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_each_scene_is_told_with_what_came_of_it(transcript: str, scene: object) -> None:
    name = scene.name  # type: ignore[attr-defined]
    told = re.search(rf"^{name} .*\n((?: {{20}}.*\n)+)", transcript, re.MULTILINE)
    assert told is not None
    assert "FAILED" not in told[1]
    assert name == "does-not-fit" or re.search(r" on node-\d: [A-Z_0-9]+=\S+", told[1])


def test_pods_that_share_a_claim_have_the_same_device(transcript: str) -> None:
    shared = re.search(r"first on (\S+) (\S+)\n\s+second on (\S+) (\S+)\n", transcript)
    assert shared is not None
    assert shared[1] == shared[3]
    assert shared[2] == shared[4]
