"""The short form of `python -m tests.chaos`: a few faults, the same checks."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.builders.etcd import needs_etcd
from tests.chaos.__main__ import run


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_replicas_that_are_killed_and_paused_lose_nothing(tmp_path: Path) -> None:
    needs_etcd()
    rows, load, problems = asyncio.run(run(tmp_path, seconds=12.0, seed=3))
    assert problems == []
    assert len(rows) >= 2
    assert load.answers.answered > 20
    assert load.pods > 5
