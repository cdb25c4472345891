"""The commands of docs/concepts.md print what it shows; the glossary is in order and leaves no kind out."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, blocks

DOCUMENT = "docs/concepts.md"
TEXT = (ROOT / DOCUMENT).read_text()
COMMANDS = [block.removeprefix("$ ").partition("\n")[::2] for block in blocks(DOCUMENT, "console")]


@pytest.mark.parametrize(("command", "shown"), COMMANDS)
def test_a_command_prints_what_is_shown(command: str, shown: str) -> None:
    program, *arguments = shlex.split(command)
    assert program == "drakit"
    found = subprocess.run(
        [Path(sys.executable).with_name("drakit"), *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    printed = found.stdout + found.stderr
    if shown.endswith("...\n"):
        assert printed.startswith(shown.removesuffix("...\n"))
    else:
        assert printed == shown


def test_there_are_commands() -> None:
    assert len(COMMANDS) == 3


def test_the_glossary_is_in_order_and_has_every_kind_of_the_group() -> None:
    words = re.findall(r"^\| ([^|]+) \| ", TEXT.partition("## Glossary")[2], flags=re.MULTILINE)[2:]
    assert words == sorted(words, key=str.lower)
    assert {"DeviceClass", "DeviceTaintRule", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"} <= set(words)
