"""Progress is for people at a terminal, and for nobody else."""

from __future__ import annotations

import sys

import pytest

from drakit.cli.output.progress import tracked


def sit_at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")


def test_a_terminal_sees_a_bar_on_standard_error_while_many_steps_are_done(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sit_at_a_terminal(monkeypatch)
    assert list(tracked(range(300), "trying nodes")) == list(range(300))
    got = capsys.readouterr()
    assert "trying nodes" in got.err
    assert got.out == ""


def test_a_few_steps_have_no_bar(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    sit_at_a_terminal(monkeypatch)
    assert list(tracked(range(5), "trying nodes")) == list(range(5))
    assert capsys.readouterr().err == ""


def test_a_log_gets_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(tracked(range(300), "trying nodes")) == list(range(300))
    assert capsys.readouterr().err == ""
