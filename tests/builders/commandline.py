"""Commands in the test's own process: as a shell would start them, but without the time that a process takes."""

from __future__ import annotations

import io
import sys
from typing import NamedTuple

import pytest

from drakit.cli import main


class Ran(NamedTuple):
    code: int
    out: str
    err: str


def drakit(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], *words: str, typed: str = "") -> Ran:
    """`drakit WORDS`, with `typed` on standard input."""
    monkeypatch.setattr(sys, "argv", ["drakit", *words])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed.encode())))
    capfd.readouterr()
    try:
        main.run()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
    said = capfd.readouterr()
    return Ran(code, said.out, said.err)
