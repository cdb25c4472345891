"""Tables for people and for pipes."""

from __future__ import annotations

import sys

import pytest

from drakit.cli.tables import print_table


def test_a_pipe_gets_plain_columns(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name", "size"), [("a", "10"), ("longer", "2")])
    assert capsys.readouterr().out == "NAME     SIZE\na        10\nlonger   2\n"


def test_a_terminal_gets_a_drawn_table(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_table(("name", "size"), [("a", "10")])
    out = capsys.readouterr().out
    assert "╭" in out
    assert "a" in out
