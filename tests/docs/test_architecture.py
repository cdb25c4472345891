"""The path of a pod in docs/architecture.md: each hop names a function that is where its link leads."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "architecture.md").read_text()
SECTION = TEXT.partition("## The path of a pod\n")[2].partition("\n## ")[0]
HOPS = re.findall(r"\| \[`([\w.]+)`\]\(\.\./([\w/.]+)\) \|$", SECTION, flags=re.MULTILINE)


def defined(path: Path) -> set[str]:
    """Functions of a module, and methods as `Class.method`."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            inner = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
            found |= {f"{node.name}.{each.name}" for each in inner}
    return found


def test_every_hop_has_a_link() -> None:
    rows = [line for line in SECTION.splitlines() if line.startswith("| ")][1:]
    assert len(HOPS) == len(rows) - 1 > 20


@pytest.mark.parametrize(("function", "path"), HOPS)
def test_the_function_of_a_hop_is_where_the_link_leads(function: str, path: str) -> None:
    assert function in defined(ROOT / path)
