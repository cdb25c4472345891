"""Pods, claims, slices, classes, nodes and clusters are built in `tests/builders`, which alone has these names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
BUILDERS = TESTS / "builders"
KINDS = {"claim", "pod", "node", "device_class", "resource_slice", "slice", "template", "pod_group", "cluster"}
"""What a stranger would call a builder."""
OBJECTS = {"claim_of", "pod_of", "node_of", "class_of", "slice_of", "inventory_of"}
"""The builders of decoded objects."""


def functions(path: Path) -> set[str]:
    """The functions of a module, not the methods of its classes."""
    body = ast.parse(path.read_text()).body
    return {node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def modules() -> list[Path]:
    return sorted(path for path in TESTS.rglob("*.py") if BUILDERS not in path.parents)


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names)


def test_the_names_of_builders_stand_for_the_shared_ones() -> None:
    """A private builder says in its name what is special about what it builds."""
    shared = {name for path in BUILDERS.glob("*.py") for name in functions(path)}
    assert shared >= (KINDS | OBJECTS) - {"slice"}
    reserved = KINDS | OBJECTS | {name for name in shared if name.endswith("_document")}
    again = {str(path.relative_to(TESTS)): functions(path) & reserved for path in modules()}
    assert {path: names for path, names in again.items() if names} == {}


def test_no_test_imports_from_another_test_module() -> None:
    found = {str(path.relative_to(TESTS)): set(imported(path)) for path in modules()}
    wrong = {
        path: {each for each in names if each.startswith("tests.") and ".test_" in each}
        for path, names in found.items()
    }
    assert {path: names for path, names in wrong.items() if names} == {}
