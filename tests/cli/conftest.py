"""`drakit` as a fixture: commands in the test's process; a terminal, where one is needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import pytest

from drakit.cli.commands import top
from tests.builders.commandline import Ran, drakit

Run = Callable[..., Ran]


@pytest.fixture
def command_line(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    return partial(drakit, monkeypatch, capfd)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the tool that wants one."""
    seen = SimpleNamespace(isatty=lambda: True)
    monkeypatch.setattr(top, "sys", SimpleNamespace(stdin=seen, stdout=seen))
