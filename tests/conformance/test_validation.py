"""The recorded verdicts of a real API server on objects, all that validation decides."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.conformance import validation
from tests.conformance.vectors import Case

CASES = list(validation.cases([]))


@pytest.mark.parametrize("group", sorted({case["group"] for case in CASES}))
def test_every_recorded_verdict_agrees(group: str) -> None:
    outcomes = [(case["id"], validation.replay(case)) for case in CASES if case["group"] == group]
    assert [(name, outcome.differences) for name, outcome in outcomes if outcome.differences] == []
    assert sum(outcome.decided for _, outcome in outcomes)


def test_no_recorded_case_is_left_out() -> None:
    assert len([case for case in CASES if case["group"].startswith(("validation/", "update/"))]) == 1285


def test_error_texts_are_those_recorded_but_for_syntax_errors_and_pod_diffs() -> None:
    outcomes = list(map(validation.replay, CASES))
    other = [text for outcome in outcomes for text in outcome.other_texts]
    assert [text for text in other if "Syntax error" not in text and "pod updates may not change" not in text] == []
    assert sum(outcome.same_texts for outcome in outcomes) > 650


def _case(**changes: object) -> Case:
    body = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "${ID}"}, "spec": {}}
    step = {"method": "POST", "path": "/apis/resource.k8s.io/v1/deviceclasses", "body": body}
    return {"id": "c", "group": "validation/x", "about": "", "steps": [step], "expect": [{"code": 201}], **changes}


def test_the_replay_notices_an_error_that_was_not_recorded() -> None:
    case = _case()
    case["steps"][0]["body"]["metadata"] = {"name": "BAD"}
    assert validation.replay(case).differences


def test_the_replay_notices_a_recorded_error_that_is_missing() -> None:
    cause = {"field": "spec", "reason": "FieldValueRequired", "message": "Required value"}
    assert validation.replay(_case(expect=[{"code": 422, "body": {"details": {"causes": [cause]}}}])).differences


def test_the_replay_notices_an_object_that_should_not_have_been_stored() -> None:
    case = _case()
    setup = {**case["steps"][0], "body": {**case["steps"][0]["body"], "metadata": {"name": "BAD"}}}
    assert validation.replay({**case, "setup": [setup]}).differences


def test_the_command_names_what_differs_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = _case(id="wrong", expect=[{"code": 422, "body": {"details": {"causes": []}}}])
    wrong["steps"][0]["body"]["metadata"] = {}
    file = tmp_path / "cases.jsonl.gz"
    file.write_bytes(gzip.compress("\n".join(map(json.dumps, (_case(id="right"), wrong))).encode()))
    assert validation.main([str(file)]) == 1
    shown = capsys.readouterr().out
    assert "agree    1 of    2" in shown
    assert "wrong" in shown
