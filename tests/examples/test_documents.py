"""Every object that the documents show as YAML is among the examples.

The documents stand in the folder beside the repository; without it there is nothing to compare with.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.examples.manifests import ROOT, every_object

DOCUMENTS = ROOT.parent / "shared" / "spec"

HEAD = re.compile(r"^\s*kind: (\w+)\s*$")
NAME = re.compile(r"^\s*name: \"?([^\s\"#]+)\"?")
LOOKAHEAD = 5

# What a document shows under a name or kind that v1.36 does not have, and what it is in the examples.
CORRECTED = {
    ("DeviceClass", "mygpusclass"): ("DeviceClass", "mygpuclass"),
}

# Where a document turns from what is to what might be.
FUTURE = re.compile(r"^(Future Enhancements|Future Possibilities)$")

pytestmark = pytest.mark.skipif(not DOCUMENTS.is_dir(), reason="the documents are not beside this repository")


def shown_objects(path: Path) -> Iterator[tuple[str, str]]:
    """(kind, name) of each object that is shown with its name, up to the part on the future."""
    lines = path.read_text().splitlines()
    end = next((number for number, line in enumerate(lines) if FUTURE.match(line)), len(lines))
    for number, line in enumerate(lines[:end]):
        if head := HEAD.match(line):
            following = lines[number + 1 : number + LOOKAHEAD]
            if any(line.strip() == "metadata:" for line in following):
                named = (match for match in map(NAME.match, following) if match)
                yield from ((head[1], match[1]) for match in list(named)[:1])


def documents() -> list[Path]:
    return sorted(DOCUMENTS.glob("[0-9]*.txt"))


def test_every_named_object_of_the_documents_is_an_example_as_often_as_it_is_shown() -> None:
    shown = Counter(CORRECTED.get(pair, pair) for path in documents() for pair in shown_objects(path))
    assert len(documents()) == 5
    assert shown.total() > 40
    have = Counter((manifest["kind"], manifest["metadata"]["name"]) for _, manifest in every_object())
    assert shown - have == Counter()
