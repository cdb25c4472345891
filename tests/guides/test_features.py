"""The README's tour and the guides of the features: every command is run, and says what they show.

`DRAKIT_UPDATE_GUIDES=1` writes what a command says where a guide shows nothing below it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.e2e.kubectl import KUBECTL, modern
from tests.e2e.processes import ROOT, apiserver
from tests.guides.console import Guide

FEATURES = ROOT / "docs" / "guides" / "features"
GUIDES = sorted(path for path in FEATURES.glob("*.md") if path.name != "index.md")
README = ROOT / "README.md"

pytestmark = [
    pytest.mark.skipif(KUBECTL is None, reason="there is no kubectl on PATH"),
    modern,
    pytest.mark.xdist_group("guides"),
]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    place = tmp_path_factory.mktemp("cluster")
    commands = place / "bin"
    commands.mkdir()
    script = commands / "drakit"
    script.write_text(f"#!{sys.executable}\nfrom drakit.cli.main import run\nrun()\n")
    script.chmod(0o755)
    with apiserver("--data-dir", str(place / "data"), "--nodes", "2", name="up") as running:
        yield {
            "PATH": f"{commands}:{os.environ['PATH']}", "HOME": str(place), "LANG": "C.UTF-8",
            "KUBECONFIG": str(running.kubeconfig),
        }  # fmt: skip


@pytest.mark.timeout(300)
@pytest.mark.parametrize("path", [README, *GUIDES], ids=lambda path: path.stem)
def test_every_command_of_a_guide_says_what_the_guide_shows(
    path: Path, environment: Mapping[str, str], tmp_path: Path
) -> None:
    guide = Guide.read(path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    wrong = [step for step in guide.run(tmp_path, environment) if step.expected and not step.is_as_expected]
    if os.environ.get("DRAKIT_UPDATE_GUIDES"):
        path.write_text(guide.written())
    told = "\n\n".join(f"$ {each.command}\n" + "\n".join(each.said) for each in wrong)
    assert not wrong, told
    assert len(guide.steps) > 3


def test_the_table_of_contents_has_every_guide() -> None:
    text = (FEATURES / "index.md").read_text()
    assert [path.name for path in GUIDES if f"({path.name})" not in text] == []
