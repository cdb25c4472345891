"""Bodies that clients sent to a real server, and what it made of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from drakit.api import decode, deprecation, encode, find_plural, parse_documents, set_defaults, to_wire
from drakit.base.errors import DecodeError
from tests.conformance.vectors import read_vectors

CASES = Path(__file__).parents[1] / "conformance" / "data" / "api"
NOW = datetime(2026, 1, 1, tzinfo=UTC)

Step = tuple[str, dict[str, Any], dict[str, Any]]
# What strategies and admission add or hold back, after decoding and defaulting.
SERVER_METADATA = ("uid", "resourceVersion", "generation", "creationTimestamp", "finalizers")


def steps() -> Iterator[Step]:
    """Every create of an object of a known kind: case, request, answer."""
    for case in read_vectors(sorted(CASES.glob("*.jsonl.gz"))):
        for step, answer in zip(case["steps"], case["expect"], strict=True):
            if step["method"] == "POST" and ("body" in step or "raw" in step) and target(step):
                yield case["id"], step, answer


def target(step: dict[str, Any]) -> tuple[str, str] | None:
    """Group version and kind that a collection's address stands for."""
    parts = step["path"].strip("/").split("/")
    group_version = "/".join(parts[1:3]) if parts[0] == "apis" else parts[1]
    kind = find_plural(group_version, parts[-1])
    return (group_version, kind.kind) if kind and "${NAME}" not in parts else None


def body(step: dict[str, Any]) -> str:
    return step["raw"] if "raw" in step else json.dumps(step["body"], ensure_ascii=False)


def is_strict(step: dict[str, Any]) -> bool:
    return (step.get("query") or {}).get("fieldValidation") == "Strict"


ALL = list(steps())
ACCEPTED = [each for each in ALL if each[2]["code"] == 201]
UNDECODABLE = [
    each for each in ALL if each[2]["code"] == 400 and "cannot be handled as a" in each[2]["body"].get("message", "")
]
# The recorded text names Go's own type of a text or map key, or a conversion between Go types.
OTHER_WORDS = ("v1.DeviceTaintEffect", "types.UID", "v1.DeviceAllocationMode", "v1.ResourceName", "unknown conversion")


def comparable(document: dict[str, Any], like: dict[str, Any]) -> dict[str, Any]:
    """Without what the server itself decides."""
    metadata = {name: value for name, value in document["metadata"].items() if name not in SERVER_METADATA}
    for name in ("name", "namespace"):  # generated, or taken from the address
        if name in like["metadata"]:
            metadata.setdefault(name, like["metadata"][name])
    kept = {**document, "metadata": metadata}
    kept.pop("status", None)  # reset on create
    if document["kind"] == "Pod":  # admission
        added = ("tolerations", "priority", "preemptionPolicy")
        kept["spec"] = {name: value for name, value in document["spec"].items() if name not in added}
    return kept


@pytest.mark.parametrize(
    ("case", "step", "answer"), ACCEPTED, ids=[f"{each[0]}-{i}" for i, each in enumerate(ACCEPTED)]
)
def test_an_accepted_object_is_written_as_the_server_wrote_it(case: str, step: Any, answer: Any) -> None:
    decoded = decode(body(step), strict=is_strict(step), default=target(step))
    value = set_defaults(decoded.object, NOW)
    wire = to_wire(value, decoded.version)
    sent = json.loads(json.dumps(wire).replace("2026-01-01T00:00:00Z", "<time>"))
    assert comparable(sent, answer["body"]) == comparable(answer["body"], answer["body"])
    assert json.loads(encode(value, decoded.version)) == wire
    assert parse_documents(encode(value, decoded.version, syntax="yaml").decode(), syntax="yaml") == [wire]


@pytest.mark.parametrize(
    ("case", "step", "answer"), ACCEPTED, ids=[f"{each[0]}-{i}" for i, each in enumerate(ACCEPTED)]
)
def test_warnings_are_those_of_the_server(case: str, step: Any, answer: Any) -> None:
    decoded = decode(body(step), strict=False, default=target(step))
    group_version = decoded.kind.group_version(decoded.version)
    expected = [warning.removeprefix('299 - "').removesuffix('"') for warning in answer.get("warnings", [])]
    old = deprecation(group_version, decoded.kind.kind)
    ours = [old] if old else []
    ours += [] if (step.get("query") or {}).get("fieldValidation") == "Ignore" else decoded.warnings
    theirs = [each.replace('\\"', '"') for each in expected if "field" in each or "deprecated" in each]
    assert ours == theirs


@pytest.mark.parametrize(
    ("case", "step", "answer"), UNDECODABLE, ids=[f"{each[0]}-{i}" for i, each in enumerate(UNDECODABLE)]
)
def test_an_object_that_cannot_be_decoded_is_refused_in_the_same_words(case: str, step: Any, answer: Any) -> None:
    with pytest.raises(DecodeError) as refused:
        decode(body(step), strict=is_strict(step), default=target(step))
    message = answer["body"]["message"]
    if not any(words in message for words in OTHER_WORDS) and "in scheme" not in message:
        assert message.endswith(str(refused.value))


def test_the_recordings_are_there() -> None:
    assert (len(ACCEPTED) > 400, len(UNDECODABLE) > 90) == (True, True)
