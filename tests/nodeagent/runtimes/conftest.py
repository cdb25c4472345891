"""What several files of this folder need."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

PROGRAMS = ("sh", "cat", "sleep", "ls", "env", "stty", "head", "tail", "hostname")


@pytest.fixture(scope="session")
def root_file_system(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An image: a few programs of this machine, with the libraries that they need."""
    root = tmp_path_factory.mktemp("image") / "rootfs"
    for name in ("bin", "etc", "tmp", "dev", "proc", "sys"):
        (root / name).mkdir(parents=True)
    for program in PROGRAMS:
        path = Path(shutil.which(program) or "").resolve()
        shutil.copy2(path, root / "bin" / program)
        listed = subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=False).stdout
        for library in re.findall(r"(/\S+)", listed):
            target = root / library.lstrip("/")
            if Path(library).is_file() and not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(library, target)
    (root / "etc" / "passwd").write_text("app:x:1234:1235::/:/bin/sh\n")
    return root
