"""`drakit` as a fixture: commands in the test's process."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from tests.builders.commandline import Ran, drakit

Run = Callable[..., Ran]


@pytest.fixture
def command_line(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    return partial(drakit, monkeypatch, capfd)
