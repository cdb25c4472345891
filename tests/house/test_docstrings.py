"""A name in a docstring is a name of the code: docstrings follow when something is renamed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "drakit"
NAME = re.compile(r"`([a-z_][a-z_.0-9]*)`")
ELSEWHERE = {"sun_path", "cp", "j", "_pb2_grpc"}
"""Names of the system, of commands and of formulas."""
METRIC = re.compile(r"^(scheduler|resourceclaim_controller)_")
"""Metrics are named by a prefix and a name."""


def trees() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        if "_pb2" not in path.stem:
            yield path, ast.parse(path.read_text())


def texts(tree: ast.Module) -> list[ast.Constant]:
    """Strings that stand alone: docstrings of modules, classes, functions and attributes."""
    found = (node.value for node in ast.walk(tree) if isinstance(node, ast.Expr))
    return [value for value in found if isinstance(value, ast.Constant) and isinstance(value.value, str)]


def names_in(tree: ast.Module) -> Iterator[str]:
    """Identifiers, and words in strings that are no docstrings."""
    prose = set(map(id, texts(tree)))
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.alias(name=name):
                yield name.rpartition(".")[2]
            case ast.keyword(arg=str(name)):
                yield name
            case ast.Constant(value=str(text)) if id(node) not in prose:
                yield from re.findall(r"\w+", text)


def test_names_in_docstrings_exist() -> None:
    known, told = set(ELSEWHERE), []
    for path, tree in trees():
        known |= {path.stem, path.parent.name, *names_in(tree)}
        told += [(path, name) for text in texts(tree) for name in NAME.findall(str(text.value))]
    wrong = {
        f"{path.relative_to(SOURCE)}: {name}"
        for path, name in told
        if name.rpartition(".")[2] not in known and not METRIC.match(name)
    }
    assert wrong == set()
