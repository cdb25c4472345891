"""The house is held by this graph: a room imports only the rooms named on its right."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "drakit"

_CORE = (
    "base cel api selectors validation quota store apiserver client informers manifests allocator lint scheduler "
    "controllers"
)
_BELOW_SIMULATE = f"{_CORE} pluginapi nodeagent driverkit drivers explain conformance"

ALLOWED = {
    room: set(targets.split())
    for room, targets in {
        "base": "",
        "cel": "base",
        "api": "base",
        "selectors": "base api cel",
        "validation": "base api selectors",
        "quota": "base api",
        "store": "base",
        "apiserver": "base cel api selectors validation quota store",
        "client": "base api",
        "informers": "base api client",
        "manifests": "base api",
        "allocator": "base api selectors",
        "lint": "base api selectors validation manifests allocator",
        "scheduler": "base api client informers allocator",
        "controllers": "base api quota client informers allocator",
        "pluginapi": "",
        "nodeagent": "base api client informers pluginapi",
        "driverkit": "base api selectors validation client informers pluginapi",
        "drivers": "base api driverkit",
        "explain": "base api selectors allocator scheduler",
        "conformance": "base api validation client pluginapi apiserver store",
        "simulate": _BELOW_SIMULATE,
        "testing": f"{_BELOW_SIMULATE} simulate",
        "dashboard": "base api client informers allocator explain",
        "cli": f"{_BELOW_SIMULATE} simulate testing dashboard",
    }.items()
}


def rooms() -> list[str]:
    return sorted(path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__")


def imports_of(source: Path, package: tuple[str, ...]) -> Iterator[str]:
    """Every `drakit.<room>` that a file imports, inside functions and type-checking blocks too."""
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, (base, node.module or "")))
            names = [f"{module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name.split(".")[1] for name in names if name.startswith("drakit.") and name.count("."))


def violations() -> Iterator[str]:
    for source in sorted(SOURCE.rglob("*.py")):
        parts = source.relative_to(SOURCE.parent).parts
        if len(parts) < 3:
            continue
        room = parts[1]
        for target in imports_of(source, parts[:-1]):
            if target != room and target in ALLOWED and target not in ALLOWED[room]:
                yield f"{source.relative_to(ROOT)}: {room} -> {target}"


def test_imports_follow_the_layers() -> None:
    assert list(violations()) == []


@pytest.mark.parametrize("room", rooms())
def test_each_room_is_in_the_plan_and_says_what_it_is(room: str) -> None:
    assert room in ALLOWED
    docstring = ast.get_docstring(ast.parse((SOURCE / room / "__init__.py").read_text()))
    assert docstring, f"{room} does not say what lives in it"


def test_a_wrong_import_would_be_seen(tmp_path: Path) -> None:
    source = tmp_path / "wrong.py"
    source.write_text("def f():\n    from ..api import kinds\n    import drakit.store.memory\n")
    assert list(imports_of(source, ("drakit", "cel"))) == ["api", "store"]
