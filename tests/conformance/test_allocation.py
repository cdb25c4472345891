"""The allocator gives the recorded answer of Kubernetes in every case."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

from tests.conformance.allocation import DATA, difference, main
from tests.conformance.vectors import Case, read_vectors


def _by_theme() -> dict[str, list[Case]]:
    themes: dict[str, list[Case]] = defaultdict(list)
    for case in read_vectors([DATA]):
        themes[case["theme"]].append(case)
    return themes


CASES = _by_theme()


@pytest.mark.parametrize("theme", sorted(CASES))
def test_all_cases_of_a_theme_agree(theme: str) -> None:
    differing = {case["id"]: found for case in CASES[theme] if (found := difference(case))}
    assert not differing


def test_no_case_is_missing() -> None:
    assert sum(map(len, CASES.values())) == 2077


def test_the_command_names_what_differs_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right = next(case for case in CASES["basic"] if case["expect"]["outcome"] == "allocated")
    wrong = {**right, "id": "wrong", "expect": {"outcome": "none"}}
    file = tmp_path / "cases.jsonl"
    file.write_text(f"{json.dumps(right)}\n{json.dumps(wrong)}\n")
    assert main([str(file)]) == 1
    assert capsys.readouterr().out.split("\n") == ["agree 1 of 2", "wrong", ""]
