"""What several files of this folder need."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.nodeagent.runtimes.tinyimage import make_root_file_system


@pytest.fixture(scope="session")
def root_file_system(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_root_file_system(tmp_path_factory.mktemp("image") / "rootfs")
