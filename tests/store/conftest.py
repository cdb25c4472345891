"""Every test that takes `engine` runs once per engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.engines import Engine


@pytest.fixture(params=["memory", "sqlite"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    return Engine(request.param, tmp_path / "store.db")
