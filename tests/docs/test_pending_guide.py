"""docs/guides/why-is-my-pod-pending.md: every command prints what the guide shows."""

from __future__ import annotations

import shlex

import pytest

from tests.builders.commandline import drakit
from tests.docs.blocks import ROOT, blocks

GUIDE = "docs/guides/why-is-my-pod-pending.md"
SHOWN = blocks(GUIDE, "console")


@pytest.mark.parametrize("block", SHOWN, ids=range(len(SHOWN)))
def test_a_command_of_the_guide_prints_what_it_shows(
    block: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    typed, _, expected = block.partition("\n")
    ran = drakit(monkeypatch, capfd, *shlex.split(typed.removeprefix("$ "))[1:])
    printed = [line.rstrip() for line in (ran.out + ran.err).splitlines()]
    assert "\n".join(printed).rstrip() == expected.rstrip()


def test_the_readme_leads_to_the_guide() -> None:
    assert f"]({GUIDE})" in (ROOT / "README.md").read_text()
