"""The manifests under examples/ as plain data, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"

Manifest = dict[str, Any]


def files() -> list[Path]:
    return sorted(EXAMPLES.rglob("*.yaml"))


def listed_files() -> list[Path]:
    """The files that the table of contents speaks of; the demo cluster is described where it is."""
    return [path for path in files() if EXAMPLES / "demo-cluster" not in path.parents]


def name_of(path: Path) -> str:
    return path.relative_to(EXAMPLES).as_posix()


def objects(path: Path) -> list[Manifest]:
    """The objects of a file; a `List`, as kubectl saves one, stands for its items."""
    documents = [document for document in yaml.safe_load_all(path.read_text()) if document is not None]
    return [item for document in documents for item in document.get("items", [document])]


def every_object() -> Iterator[tuple[Path, Manifest]]:
    for path in files():
        for manifest in objects(path):
            yield path, manifest


def values_of(node: object, key: str) -> Iterator[Any]:
    """Every value that stands under a key, at any depth."""
    if isinstance(node, dict):
        for name, value in node.items():
            if name == key:
                yield value
            yield from values_of(value, key)
    elif isinstance(node, list):
        for item in node:
            yield from values_of(item, key)
