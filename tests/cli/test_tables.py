"""Tables for people and for pipes."""

from __future__ import annotations

import re
import sys

import pytest

from drakit.cli.output.tables import print_table


def test_a_pipe_gets_plain_columns(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name", "size"), [("a", "10"), ("longer", "2")])
    assert capsys.readouterr().out == "NAME     SIZE\na        10\nlonger   2\n"


def test_a_terminal_gets_a_drawn_table(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_table(("name", "size"), [("a", "10")])
    out = capsys.readouterr().out
    assert "╭" in out
    assert "a" in out


def test_a_terminal_too_narrow_for_the_columns_gets_row_by_row(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    print_table(("name", "driver", "note"), [("a" * 30, "gpu.example.com", ""), ("b", "nic.example.com", "x" * 25)])
    assert re.sub(r"\x1b\[\d+m", "", capsys.readouterr().out) == (
        f"name    {'a' * 30}\ndriver  gpu.example.com\n\nname    b\ndriver  nic.example.com\nnote    {'x' * 25}\n"
    )


def test_brackets_in_a_cell_are_text_and_no_markup(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_table(("name",), [("requests[0][red]",)])
    assert "requests[0][red]" in capsys.readouterr().out
