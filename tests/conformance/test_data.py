"""The recorded cases kept here are the recordings, unedited.

The originals stand in the folder beside the repository; a clone without it skips the comparison and
still checks that every file opens and that every case has an id of its own.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.vectors import read_vectors

HERE = Path(__file__).parent
DATA = HERE / "data"
ORIGINALS = HERE.parents[1].parent / "shared"

needs_originals = pytest.mark.skipif(
    not ORIGINALS.is_dir(), reason="the folder with the original recordings is not beside this repository"
)


def copy_of(original: Path) -> Path:
    """Where the project keeps a file of the originals; recorded cases are always compressed."""
    relative = original.relative_to(ORIGINALS)
    if original.suffix == ".py":
        return HERE / original.name
    place = DATA / Path(*relative.parts[1:])
    return place.with_name(f"{place.name}.gz") if place.suffix == ".jsonl" else place


def content(path: Path) -> bytes:
    raw = path.read_bytes()
    return gzip.decompress(raw) if path.suffix == ".gz" else raw


def originals() -> Iterator[Path]:
    yield from sorted((ORIGINALS / "vectors").glob("*.gz"))
    conformance = ORIGINALS / "conformance"
    for group in ("api", "flows"):
        yield from sorted((conformance / group).glob("*.jsonl"))
    for name in ("tokens.csv", "replay.py", "node-flows.jsonl.gz"):
        yield conformance / name


def kept(folder: str) -> list[Path]:
    return sorted((DATA / folder).glob("*.jsonl.gz"))


@needs_originals
def test_every_recording_has_an_equal_copy() -> None:
    found = list(originals())
    assert {path.name for path in found} >= {"quantity.jsonl.gz", "cel.jsonl.gz", "allocation.jsonl.gz", "flows.jsonl"}
    missing = [path.name for path in found if not copy_of(path).is_file()]
    assert missing == []
    assert [path.name for path in found if content(copy_of(path)) != content(path)] == []


@needs_originals
def test_no_copied_corpus_file_is_left_over() -> None:
    assert {*kept("api"), *kept("flows")} <= {copy_of(path) for path in originals()}


@pytest.mark.parametrize("path", sorted(DATA.rglob("*.jsonl.gz")), ids=lambda path: path.name)
def test_each_recorded_case_has_an_id_of_its_own(path: Path) -> None:
    ids = [case["id"] for case in read_vectors([path])]
    assert ids
    assert len(set(ids)) == len(ids)


def test_the_corpus_is_whole() -> None:
    cases = list(read_vectors(kept("api")))
    assert len(cases) == 1706
    assert all({"id", "group", "steps", "expect"} <= case.keys() for case in cases)
    flows = list(read_vectors(kept("flows")))
    assert len(flows) == 45
    assert all({"id", "about", "steps", "snapshots", "final"} <= flow.keys() for flow in flows)
    nodes = list(read_vectors([DATA / "node-flows.jsonl.gz"]))
    assert len(nodes) == 83
    assert all({"id", "group", "about", "setup", "steps"} <= flow.keys() for flow in nodes)


def test_every_user_of_the_cases_has_a_token() -> None:
    tokens = {line.split(",")[1] for line in (DATA / "tokens.csv").read_text().splitlines()}
    cases = read_vectors(kept("api"))
    steps = [step for case in cases for part in ("setup", "steps") for step in case.get(part) or ()]
    named = {step["user"] for step in steps if "user" in step}
    assert "alice" in named
    # An empty user sends no credentials and "bad" sends an unknown token.
    assert named - tokens <= {"", "bad"}
