"""Patches and applies as a real API server has answered them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from drakit.base.status import Status
from tests.apiserver.patching.recorded import STAMP, Recorded
from tests.conformance.vectors import read_vectors

CASES = Path(__file__).parents[2] / "conformance" / "data" / "api" / "patch.jsonl.gz"

# What these cases ask of a server beyond patches: validation, names, options of the request.
_BEYOND = (
    "spec change", "name", "nodeName", "invalid object", "immutable", "missing key", "precondition",
    "without fieldManager", "too long", "force without", "Strict", "unsupported", "pod",
)  # fmt: skip


def public_cases() -> list[Any]:
    cases = list(read_vectors([CASES]))
    kept = [case for case in cases if not any(words in case["about"] for words in _BEYOND)]
    assert len(kept) >= 45
    return [pytest.param(case, id=case["id"]) for case in kept]


@pytest.mark.parametrize("case", public_cases())
def test_the_answer_is_the_recorded_one(case: dict[str, Any]) -> None:
    server = Recorded()
    filled = json.loads(json.dumps(case).replace("${ID}", "x0000000a").replace("${NS}", "n0000000a"))
    for step in filled["setup"]:
        if step["path"] != "/api/v1/namespaces":
            assert server.answer(step)[0] == step["code"]
    for step, expected in zip(filled["steps"], filled["expect"], strict=True):
        code, body = server.answer(step)
        assert code == expected["code"], body
        assert _compared(body) == _compared(expected["body"])


def _compared(body: Any) -> Any:
    """Failures by code, reason and causes; objects whole, save for what a replay cannot repeat."""
    plain = json.loads(msgspec.json.encode(body)) if isinstance(body, Status) else body
    if plain.get("kind") == "Status":
        return plain["code"], plain["reason"], plain["message"] if plain["code"] == 409 else "", plain.get("details")
    hidden = {"managedFields": None, "resourceVersion": None, "uid": None}
    metadata = {key: each for key, each in plain["metadata"].items() if key not in hidden}
    text = json.dumps({**plain, "metadata": metadata}, sort_keys=True)
    return json.loads(text.replace(STAMP, "<time>"))
