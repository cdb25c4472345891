"""Termination messages: the container's own, or the end of its log."""

from __future__ import annotations

from pathlib import Path

from drakit.nodeagent.runtimes.lastwords import last_words


def words(base: Path, *, code: int = 1, log_on_error: bool = True) -> str:
    return last_words(str(base / "file"), exit_code=code, log_path=str(base / "0.log"), log_on_error=log_on_error)


def test_what_the_container_wrote_is_cut(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x" * 5000)
    assert words(tmp_path) == "x" * 4096
    assert last_words("", exit_code=1, log_path="", log_on_error=True) == ""


def test_the_end_of_the_log_stands_in_for_a_container_that_failed(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert words(tmp_path) == ""  # no log either
    lines = [f"2026-01-01T00:00:00Z stdout F line {number}\n" for number in range(200)]
    (tmp_path / "0.log").write_text(
        "".join(lines) + "2026-01-01T00:00:00Z stderr P un\n2026-01-01T00:00:00Z stderr P done"
    )
    text = words(tmp_path)
    assert (text.splitlines()[0], text.splitlines()[-1]) == ("line 122", "undone")
    assert words(tmp_path, code=0) == ""
    assert words(tmp_path, log_on_error=False) == ""
