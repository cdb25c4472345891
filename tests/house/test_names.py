"""One word per thing: a class name stands for one class, and modules are nouns."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "drakit"
ROOMS = sorted(path.name for path in SOURCE.iterdir() if (path / "__init__.py").is_file())
TWICE = {"Status"}
"""Kubernetes has two of these: the answer of a server, and what a plugin of the scheduler says."""
ACTING = {"apiserver", "scheduler"}
"""Rooms with folders whose modules are the steps of one action (`patching/merging`): there a gerund is not bare."""
VAGUE = {"utils", "util", "helpers", "helper", "manager", "common", "misc"}


def modules() -> list[Path]:
    """Generated code has the names of the protocols."""
    found = (path for room in ROOMS for path in (SOURCE / room).rglob("*.py"))
    return sorted(path for path in found if "_pb2" not in path.stem)


def definitions() -> Iterator[tuple[str, Path, set[str]]]:
    """Each public class, its file, and the last parts of its bases' names."""
    for path in modules():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield node.name, path, {ast.unparse(base).rpartition(".")[2] for base in node.bases}


def test_a_class_name_stands_for_one_class_or_for_one_and_its_special_case() -> None:
    """`client.NotFound` is a `base.errors.NotFound`: that is one meaning."""
    roots = defaultdict(list)
    for name, path, bases in definitions():
        if name not in bases:
            roots[name].append(str(path.relative_to(SOURCE)))
    assert {name: paths for name, paths in roots.items() if len(paths) > 1 and name not in TWICE} == {}


def test_modules_are_named_by_nouns() -> None:
    stems = {path.stem for path in modules()}
    settled = {path.stem for path in modules() if path.relative_to(SOURCE).parts[0] not in ACTING}
    assert {stem for stem in settled if stem.endswith("ing")} == set()
    assert stems & VAGUE == set()


def test_plain_data_has_one_name() -> None:
    """`Plain` is that of `drakit.api`: a second definition would be another type to a reader."""
    found = [path for path in modules() if any(_defines(node, "Plain") for node in ast.parse(path.read_text()).body)]
    assert [str(path.relative_to(SOURCE)) for path in found] == ["api/objects/plain.py"]


def _defines(node: ast.stmt, name: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else ()
    return any(isinstance(each, ast.Name) and each.id == name for each in targets)
