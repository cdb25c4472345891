"""The guide to selectors holds: its examples are true, its program runs, and no function is left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from drakit.cel import kubernetes
from drakit.selectors import BoundDevice, bind, compile_selector

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "selectors.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```([a-z ]*)\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
EXAMPLES = [(kind, line) for kind, block in BLOCKS if kind.startswith("cel") for line in block.splitlines()]


def _block(kind: str) -> str:
    return str(next(block for found, block in BLOCKS if found == kind))


@pytest.fixture(scope="module")
def device() -> BoundDevice:
    described = yaml.safe_load(_block("yaml"))
    return bind(described["driver"], described["device"])


@pytest.mark.parametrize(("kind", "text"), EXAMPLES)
def test_an_example_is_true_for_the_device(kind: str, text: str, device: BoundDevice) -> None:
    selector = compile_selector(text, list_attributes=kind == "cel lists")
    assert selector.evaluate(device).matches, selector.evaluate(device).error
    assert selector.metered(device).matches


def test_every_function_and_macro_has_an_example() -> None:
    used = set(re.findall(r"[A-Za-z_][A-Za-z0-9_.]*(?=\()", "\n".join(text for _, text in EXAMPLES)))
    called = used | {name.rpartition(".")[2] for name in used}
    environment = kubernetes()
    wanted = {name for name in environment.functions if not re.search(r"[^a-zA-Z0-9.]", name)}
    wanted |= {name for name, _, _ in environment.macros}
    assert sorted(wanted - called) == []


def test_the_program_of_the_guide_runs_and_prints_the_trace(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(_block("python"), "selectors.md", "exec"), {})
    assert capsys.readouterr().out == _block("text")
