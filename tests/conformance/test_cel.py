"""The recorded CEL facts of a real cluster, all of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.conformance import cel
from tests.conformance.vectors import read_vectors


@pytest.fixture(scope="module")
def report() -> cel.Report:
    return cel.run(read_vectors([cel.DATA]))


def test_all_recorded_results_and_errors_agree(report: cel.Report) -> None:
    assert report.total == 2424
    assert report.differing == []


def test_recorded_costs_are_exact_in_at_least_95_of_100_cases(
    report: cel.Report, capsys: pytest.CaptureFixture[str]
) -> None:
    with capsys.disabled():
        print("", *report.lines(), sep="\n")
    assert report.costed == 1988
    assert report.share >= 95


def test_costs_differ_only_where_upstream_stops_somewhere_in_a_map_of_random_order(report: cel.Report) -> None:
    over_a_map = re.compile(r"device\.(attributes|capacity)(\[[^]]*\])?\.exists\(")
    assert [text for text in report.inexact if not over_a_map.match(text)] == []


def test_the_command_names_what_differs_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    device = {"driver": "gpu.example.com", "attributes": {}, "capacity": {}}
    rows = [
        {"id": "right", "expression": "true", "expect": {"matches": True, "maxCost": 0, "actualCost": 0}},
        {"id": "costly", "expression": "1 == 1", "expect": {"matches": True, "maxCost": 2, "actualCost": 1}},
        {"id": "wrong", "expression": "true", "expect": {"matches": False, "maxCost": 0, "actualCost": 0}},
        {"id": "broken", "expression": "1 +", "expect": {"matches": False, "maxCost": 0, "actualCost": 0}},
        {"id": "whole", "expression": "true", "expect": {"compileError": "no"}},
        {"id": "errs", "expression": "true", "expect": {"runtimeError": "no", "maxCost": 0, "actualCost": 0}},
    ]
    file = tmp_path / "cases.jsonl"
    file.write_text("\n".join(json.dumps({**row, "device": device, "listTypeAttributes": False}) for row in rows))
    assert cel.main([str(file)]) == 1
    printed = capsys.readouterr().out
    assert "agree 2 of 6" in printed
    assert [name for name in ("wrong", "broken", "whole", "errs") if f"\n{name}:" not in printed] == []
    assert "exact cost 3 of 4 (75.00 %)" in printed
    assert "use ==" in printed
