"""The recorded quantities of a real cluster, all of them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.conformance import quantity
from tests.conformance.vectors import read_vectors


def test_all_recorded_quantities_agree() -> None:
    cases = list(read_vectors([quantity.DATA]))
    assert len(cases) == 850
    assert [case["id"] for case in cases if not quantity.agrees(case)] == []


def test_the_command_names_what_differs_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"id": "right", "in": "1.5Gi", "canonical": "1536Mi", "format": "BinarySI", "value": "1610612736"},
        {"id": "wrong", "in": "1.5Gi", "canonical": "1537Mi", "format": "BinarySI", "value": "1610612736"},
        {"id": "unexpected", "in": "1.5Gi", "error": "unable to parse quantity's suffix"},
    ]
    file = tmp_path / "cases.jsonl.gz"
    file.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    assert quantity.main([str(file)]) == 1
    assert capsys.readouterr().out.split("\n") == ["agree 1 of 3", "wrong", "unexpected", ""]


def test_a_file_that_cannot_be_read_is_a_message_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.jsonl.gz"
    broken.write_bytes(gzip.compress(b'{"id": "a"}')[:-9])
    for name in (tmp_path / "missing", broken):
        with pytest.raises(SystemExit) as ended:
            quantity.main([str(name)])
        assert ended.value.code == 2
        assert str(name) in capsys.readouterr().err
